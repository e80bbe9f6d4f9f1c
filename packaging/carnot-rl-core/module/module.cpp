#include "values.h"

NB_MODULE(_core, module) {
  module.doc() = "Carnot's rooms without LibTorch.";
  carnot::python::bind_credit(module);
  carnot::python::bind_branching(module);
  carnot::python::bind_coefficients(module);
  carnot::python::bind_environments(module);
  carnot::python::bind_graders(module);
  carnot::python::bind_objective(module);
}
