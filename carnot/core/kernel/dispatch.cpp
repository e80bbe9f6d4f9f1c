#include "carnot/core/kernel/dispatch.h"

#include "carnot/core/kernel/kernel_choice.h"
#include "carnot/core/kernel/kernel_tables.h"

namespace carnot::kernel {

extern const KernelTables kBaselineTables;
#ifdef CARNOT_X86
extern const KernelTables kAvx2Tables, kAvx512Tables;
#endif

namespace {

const KernelTables& widest() {
#ifdef CARNOT_X86
  if (may_use("avx512") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return kAvx512Tables;
  if (may_use("avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2Tables;
#endif
  return kBaselineTables;
}

const KernelTables& tables() {
  static const KernelTables& chosen = widest();
  return chosen;
}

}  // namespace

template <>
const KernelTable<float>& kernel_table<float>() {
  return tables().floats;
}
template <>
const KernelTable<double>& kernel_table<double>() {
  return tables().doubles;
}
template <>
const StorageTable<float>& storage_table<float>() {
  return tables().stored_floats;
}
template <>
const StorageTable<double>& storage_table<double>() {
  return tables().stored_doubles;
}
template <>
const StorageTable<BFloat16>& storage_table<BFloat16>() {
  return tables().stored_bfloat16;
}

}  // namespace carnot::kernel
