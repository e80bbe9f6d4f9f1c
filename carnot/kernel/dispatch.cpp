#include "carnot/kernel/dispatch.h"

namespace carnot::kernel {

extern const KernelTable<float> kBaselineFloat;
extern const KernelTable<double> kBaselineDouble;
#ifdef CARNOT_X86
extern const KernelTable<float> kAvx2Float, kAvx512Float;
extern const KernelTable<double> kAvx2Double, kAvx512Double;
#endif

namespace {

template <class T>
const KernelTable<T>& widest(const KernelTable<T>& baseline, [[maybe_unused]] const KernelTable<T>& avx2,
                             [[maybe_unused]] const KernelTable<T>& avx512) {
#ifdef CARNOT_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2;
#endif
  return baseline;
}

}  // namespace

#ifdef CARNOT_X86
template <>
const KernelTable<float>& kernel_table<float>() {
  static const KernelTable<float>& chosen = widest(kBaselineFloat, kAvx2Float, kAvx512Float);
  return chosen;
}
template <>
const KernelTable<double>& kernel_table<double>() {
  static const KernelTable<double>& chosen = widest(kBaselineDouble, kAvx2Double, kAvx512Double);
  return chosen;
}
#else
template <>
const KernelTable<float>& kernel_table<float>() {
  return widest(kBaselineFloat, kBaselineFloat, kBaselineFloat);
}
template <>
const KernelTable<double>& kernel_table<double>() {
  return widest(kBaselineDouble, kBaselineDouble, kBaselineDouble);
}
#endif

}  // namespace carnot::kernel
