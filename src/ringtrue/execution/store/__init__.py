class Store:
    pass


def load(*a): ...


merge = recompute = repair = load
