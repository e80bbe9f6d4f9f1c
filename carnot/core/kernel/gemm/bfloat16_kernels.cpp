#include "carnot/core/kernel/gemm/bfloat16_kernels.h"

#include "carnot/core/kernel/kernel_choice.h"

#ifdef CARNOT_X86
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace carnot::kernel {

extern const BFloat16Kernels kBaselineBFloat16;
#ifdef CARNOT_X86
extern const BFloat16Kernels kAvx2BFloat16, kAvx512BFloat16, kAvx512Bf16BFloat16, kAmxBFloat16;
#endif

namespace {

#ifdef CARNOT_X86
/// Bits of CPUID leaf 7, which lists extensions.
struct Leaf7 {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};
Leaf7 leaf7(unsigned part) {
  Leaf7 leaf;
  __get_cpuid_count(7, part, &leaf.eax, &leaf.ebx, &leaf.ecx, &leaf.edx);
  return leaf;
}

/// Linux lets a process use the tile registers only on request, once for all its threads.
bool tiles_are_permitted() {
#ifdef __linux__
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

const char* avx2_missing() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? nullptr : "the processor has no AVX2";
}
const char* avx512_missing() {
  const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has ? nullptr : "the processor has no AVX-512";
}
const char* avx512_bf16_missing() {
  if (const char* reason = avx512_missing()) return reason;
  return (leaf7(1).eax >> 5 & 1) != 0 ? nullptr : "the processor has no AVX512-BF16";
}
const char* amx_missing() {
  if (const char* reason = avx512_bf16_missing()) return reason;
  const unsigned extensions = leaf7(0).edx;
  if ((extensions >> 22 & 1) == 0 || (extensions >> 24 & 1) == 0) return "the processor has no AMX for bfloat16";
  return tiles_are_permitted() ? nullptr : "the system does not permit the tile registers of AMX";
}
#endif

}  // namespace

std::span<const BFloat16KernelSet> bfloat16_kernel_sets() {
  static const BFloat16KernelSet sets[] = {
#ifdef CARNOT_X86
      {&kAmxBFloat16, amx_missing()},       {&kAvx512Bf16BFloat16, avx512_bf16_missing()},
      {&kAvx512BFloat16, avx512_missing()}, {&kAvx2BFloat16, avx2_missing()},
#endif
      {&kBaselineBFloat16, nullptr},
  };
  return sets;
}

const BFloat16Kernels& bfloat16_kernels() {
  static const BFloat16Kernels& chosen = [&]() -> const BFloat16Kernels& {
    for (const BFloat16KernelSet& set : bfloat16_kernel_sets())
      if (set.missing == nullptr && may_use(set.kernels->name)) return *set.kernels;
    return kBaselineBFloat16;
  }();
  return chosen;
}

}  // namespace carnot::kernel
