"""BGD with sampled networks that the whole batch shares, as most tests of the paper's algorithm need it."""

from __future__ import annotations

from typing import Any

from bgd import BGD

PAPER: dict[str, Any] = {"mc_samples": 10, "std_max": None}


def shared_bgd(params: Any, std_init: Any = 0.02, mc_samples: int = 2, lr: Any = 1.0, **settings: Any) -> BGD:
    return BGD.paper(params, std_init, **({"mc_samples": mc_samples, "lr": lr, "std_max": "init"} | settings))
