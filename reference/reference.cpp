// The library exists from the first build on; twins stand in files of their own beside this one.
