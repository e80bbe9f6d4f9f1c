// kernel/kernel_tables.h -- the tables of one instruction set; dispatch.cpp chooses one.
#pragma once

#include "carnot/core/kernel/dispatch.h"

namespace carnot::kernel {

struct KernelTables {
  KernelTable<float> floats;
  KernelTable<double> doubles;
  StorageTable<float> stored_floats;
  StorageTable<double> stored_doubles;
  StorageTable<BFloat16> stored_bfloat16;
};

}  // namespace carnot::kernel
