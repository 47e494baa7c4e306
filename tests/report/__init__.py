"""Tests of reports and exports."""
