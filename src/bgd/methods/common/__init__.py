"""What several learners share: the base class, outputs, penalties, posteriors."""
