"""Tests of ringtrue.replicates."""
