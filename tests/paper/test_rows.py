"""What vignettes leave out of a record is nothing that they test."""

import pytest

import ringtrue as rt
from ringtrue.paper.abc import Task, study
from ringtrue.paper.rows import first_test, for_tests
from ringtrue.procedures import StudentLocation


def _records() -> list[rt.Replicates]:
    model = StudentLocation(3, 2)
    exact = rt.Study(rt.Normal(0, 1), model.simulate, model, f=rt.identity, seed=1, batch=500)
    tasks = [Task(10, "ABC", "strong", 500, 2), Task(10, "ABC", "weak", 500, 3)]
    return [rt.run(one, n=500, progress="off") for one in (exact, *map(study, tasks))]


@pytest.mark.parametrize("test", ["ks", "combination"])
@pytest.mark.parametrize("level", ["strong", "weak"])
def test_tests_of_a_smaller_record_are_those_of_the_whole(level: str, test: str) -> None:
    """Statistics and p-values have the same bits without the arrays that are left out, and some are."""
    for record in _records():
        small = for_tests(record)
        assert len(small.arrays) < len(record.arrays)
        whole, part = first_test(record, level, test), first_test(small, level, test)
        assert (whole.statistic, whole.pvalue) == (part.statistic, part.pvalue)
