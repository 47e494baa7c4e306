"""sbi: ranks, its check of them, and TARP with its check. Both run on draws that exist, as inside ``run_sbc``."""

from __future__ import annotations

from typing import Any

import torch
from sbi.diagnostics.sbc import _run_sbc, check_sbc, check_uniformity_frequentist
from sbi.diagnostics.tarp import _run_tarp, check_tarp, get_tarp_references

PACKAGES = ("sbi", "torch", "numpy")


def tensors(theta: Any, draws: Any) -> tuple[Any, Any]:
    return torch.as_tensor(theta).float(), torch.as_tensor(draws).float().swapaxes(0, 1)


def prepared(data: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return what sbi's own sampling would have left: single precision, draws first."""
    theta, draws = tensors(*data)
    return theta, draws.contiguous()


def ranks(data: tuple[Any, Any]) -> Any:
    theta, draws = data
    return _run_sbc(theta, theta, draws, show_progress_bar=False)


def check(data: tuple[Any, Any]) -> Any:
    theta, draws = data
    return check_sbc(ranks(data), theta, draws[0], num_posterior_samples=len(draws))


def ks_pvals(theta: Any, draws: Any) -> tuple[float, float]:
    """Return the part of ``check_sbc`` that has p-values; its two classifiers have none and take seconds."""
    counts = (torch.as_tensor(draws) < torch.as_tensor(theta)[:, None]).sum(dim=1)
    p = float(check_uniformity_frequentist(counts, draws.shape[1]).min())
    return -p, min(1.0, p * theta.shape[1])


def joint(data: tuple[Any, Any]) -> Any:
    theta, draws = data
    return _run_tarp(draws, theta, get_tarp_references(theta), z_score_theta=True)


def tarp(theta: Any, draws: Any) -> tuple[float, float]:
    ecp, alpha = joint(tensors(theta, draws))
    return float((ecp - alpha).abs().max()), float(check_tarp(ecp, alpha)[1])


def says(theta: Any, draws: Any) -> str:
    data = tensors(theta, draws)
    found = check_tarp(*joint(data))
    return f"{check(data)}; check_tarp: ({found[0]:.3f}, {found[1]:.3f})"


TESTS = {"sbi check_sbc, ks_pvals": ks_pvals, "sbi check_tarp": tarp}
COSTS = {"ranks": ranks, "check": check, "joint": joint}
PREPARED = dict.fromkeys(COSTS, prepared)
