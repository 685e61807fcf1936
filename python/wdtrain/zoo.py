def run(options):
    raise NotImplementedError
