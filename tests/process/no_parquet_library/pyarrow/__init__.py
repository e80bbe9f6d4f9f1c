raise ImportError("not here")
