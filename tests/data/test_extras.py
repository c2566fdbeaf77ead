"""Without the optional packages: importing works, and what needs one names the extra."""

import subprocess
import sys
import textwrap

BLOCK = """
import sys

class Blocker:
    blocked = {"scipy", "sklearn", "PIL", "pooch", "requests", "urllib3", "filelock", "rich", "platformdirs",
               "matplotlib", "pydantic", "typer", "jinja2", "pandas", "ray"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.blocked:
            raise ImportError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run(code, env=None):
    script = BLOCK + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=False)


def test_own_arrays_and_streams_need_torch_and_numpy_alone(tmp_path):
    done = run("""
        import numpy as np
        import bgd.data
        import bgd.scenarios
        from bgd.data import from_arrays
        from bgd.scenarios import Discrete, permute, scenario
        x, y = np.zeros((6, 4, 4), np.uint8), np.array([0, 1] * 3)
        tasks = permute(from_arrays(x, y, x, y), 2, shared_head=True)
        print(sum(len(batch.y) for batch in Discrete(tasks, scenario("domain"))))
    """)
    assert done.stdout == "12\n", done.stderr


CALLS = (
    ("bgd.data.load('digits')", "sklearn"),
    ("bgd.data.load('mnist')", "(requests|filelock|rich)"),
    ("bgd.data.formats.svhn.read_mat(Content('a', b''))", "scipy"),
    ("bgd.data.formats.cifar.rebuild_from_png({})", "PIL"),
    ("os.environ.pop('BGD_CACHE') and bgd.data.available()", "pooch"),
)


def test_a_missing_package_is_named_with_its_extra():
    done = run(f"""
        import os
        import re
        import bgd.data
        from bgd.data.sources.published import Content
        from bgd.errors import MissingExtraError
        for call, package in {CALLS}:
            try:
                eval(call)
            except MissingExtraError as error:
                what = f"needs {{package}}, which is not installed: pip install 'bgd.experiments.'"
                assert re.search(what, str(error)), error
                print(call)
    """)
    assert done.stdout.splitlines() == [call for call, _ in CALLS], done.stderr
