"""Where rows end. ``base`` is the contract; each kind of sink has a module of its own, imported when a pipeline names it."""
