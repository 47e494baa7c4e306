"""Tests of ringtrue.execution."""
