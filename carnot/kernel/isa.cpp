#include "carnot/kernel/isa.h"

namespace carnot::kernel {

extern const Isa<float> kBaselineFloat;
extern const Isa<double> kBaselineDouble;
#ifdef CARNOT_X86
extern const Isa<float> kAvx2Float, kAvx512Float;
extern const Isa<double> kAvx2Double, kAvx512Double;
#endif

namespace {

template <class T>
const Isa<T>& widest(const Isa<T>& baseline, [[maybe_unused]] const Isa<T>& avx2,
                     [[maybe_unused]] const Isa<T>& avx512) {
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
const Isa<float>& isa<float>() {
  static const Isa<float>& chosen = widest(kBaselineFloat, kAvx2Float, kAvx512Float);
  return chosen;
}
template <>
const Isa<double>& isa<double>() {
  static const Isa<double>& chosen = widest(kBaselineDouble, kAvx2Double, kAvx512Double);
  return chosen;
}
#else
template <>
const Isa<float>& isa<float>() {
  return widest(kBaselineFloat, kBaselineFloat, kBaselineFloat);
}
template <>
const Isa<double>& isa<double>() {
  return widest(kBaselineDouble, kBaselineDouble, kBaselineDouble);
}
#endif

}  // namespace carnot::kernel
