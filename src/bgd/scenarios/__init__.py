"""What a learner is told, how tasks are cut, and the streams that deliver them."""
