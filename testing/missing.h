// testing/missing.h -- the one way to skip a test: naming what this machine cannot have.
//
// What an install script provides does not count as missing: a test that needs it fails without it. `./run test` ends
// with one line for each reason and its number of cases, and CI compares them with tests/allowed_skips
// (tools/skipped_tests.py).
#pragma once

#include <gtest/gtest.h>

#include "testing/paths.h"

namespace carnot::testing {

enum class Missing {
  Gpu,             // a CUDA device
  NoGpu,           // a machine without one
  Processor,       // instructions, or a vendor's processor
  Namespaces,      // a kernel that lets this user make namespaces, or apply another layer of the sandbox
  Root,            // to be root
  Devices,         // permission to create device files
  PublishedData,   // the folder that CARNOT_DATA names (docs/data.md)
  Uninstrumented,  // a build without sanitizers
};

inline const char* name_of(Missing missing) {
  switch (missing) {
    case Missing::Gpu: return "GPU";
    case Missing::NoGpu: return "machine without GPU";
    case Missing::Processor: return "processor";
    case Missing::Namespaces: return "namespaces";
    case Missing::Root: return "root";
    case Missing::Devices: return "devices";
    case Missing::PublishedData: return "published data";
    case Missing::Uninstrumented: return "uninstrumented build";
  }
  return "?";
}

}  // namespace carnot::testing

/// Skips the running test. `detail` says exactly what was looked for; it is not part of the counted reason.
#define CARNOT_SKIP(missing, detail) \
  GTEST_SKIP() << "missing " << ::carnot::testing::name_of(::carnot::testing::Missing::missing) << ": " << (detail)

/// Skips the running test if no published data is available.
#define CARNOT_NEEDS_PUBLISHED_DATA() \
  if (::carnot::published_data().empty()) CARNOT_SKIP(PublishedData, "CARNOT_DATA names no folder (docs/data.md)")
