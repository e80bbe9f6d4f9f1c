"""Imports chosen files of a published program, with stubs for whatever else they import and is not installed."""
import importlib
import importlib.abc
import importlib.util
import sys
import types


class Stub(types.ModuleType):
    """A module whose every name is an empty class."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if f"{self.__name__}.{name}" in sys.meta_path[0].files:
            return importlib.import_module(f"{self.__name__}.{name}")
        return self.__dict__.setdefault(name, type(name, (), {"__init__": lambda *given, **named: None}))


class Program(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The modules of one program, by name; stubs for the others. The last one made is the one that imports."""

    def __init__(self, folder, files, also=None, replaced=None):
        """`files`: module and file in the folder, imported in this order. `also`: further ones, anywhere. `replaced`:
        substitutions in their source."""
        self.replaced = replaced or {}
        self.files = {name: folder / file for name, file in files.items()} | (also or {})
        self.owned = {name.split(".")[0] for name in self.files}
        for name in [name for name in sys.modules if name.split(".")[0] in self.owned]:
            del sys.modules[name]
        sys.meta_path[:] = [self] + [one for one in sys.meta_path if not isinstance(one, Program)]
        self.modules = [importlib.import_module(name) for name in self.files]

    def __getattr__(self, name):
        for module in vars(self).get("modules", []):
            if name in vars(module):
                return vars(module)[name]
        raise AttributeError(name)

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.owned and any(one.find_spec(name, path) for one in sys.meta_path[1:]):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        return None if spec.name in self.files else Stub(spec.name)

    def exec_module(self, module):
        if module.__name__ not in self.files:
            return
        text = self.files[module.__name__].read_text(encoding="utf-8")
        for old, new in self.replaced.items():
            text = text.replace(old, new)
        exec(compile(text, str(self.files[module.__name__]), "exec"), vars(module))
