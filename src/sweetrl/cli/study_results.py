def finish(*a, **k):
    return {}
