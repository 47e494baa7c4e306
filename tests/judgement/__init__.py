"""Tests of ringtrue.judgement."""
