"""Tests of ringtrue.functions."""
