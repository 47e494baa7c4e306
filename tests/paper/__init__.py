"""Tests of the vignettes."""
