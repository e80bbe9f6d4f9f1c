// module/values.h -- Python values as JSON and settings, and vectors as NumPy arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot::python {

namespace nb = nanobind;

using Numbers = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using NumbersIn = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// The value as JSON. Arrays of one dimension and any number type become lists, of truth values lists of 0 and 1; NaN
/// and infinities become null. Throws TypeError, which says where, for what JSON has no counterpart of.
nlohmann::json json_of(nb::handle value, const std::string& where);

/// `key=value` for each entry of the mapping, as a command line has them.
std::vector<std::string> settings_of(const nb::dict& options);

/// A NumPy array over `values`, which must live as long as `owner`.
Numbers array_over(std::vector<double>& values, nb::handle owner);

std::vector<double> vector_of(const NumbersIn& values);

/// Raises ValueError. What the library calls the command line are options here.
[[noreturn]] void raise(const Error& error);

/// The value; an error becomes ValueError.
template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(result).value();
}

void bind_credit(nb::module_& module);
void bind_branching(nb::module_& module);
void bind_coefficients(nb::module_& module);
void bind_environments(nb::module_& module);
void bind_graders(nb::module_& module);
void bind_objective(nb::module_& module);

}  // namespace carnot::python
