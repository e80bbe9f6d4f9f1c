#include "testing/separate_device/separate_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace carnot::testing {
namespace {

constexpr c10::DeviceType kSeparate = c10::DeviceType::PrivateUse1;

// No address of this process has this bit: a pointer that has it cannot be followed.
constexpr std::uintptr_t kUnreachable = std::uintptr_t{1} << 50;

void* unreachable(void* memory) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) | kUnreachable);
}
void* reachable(const void* memory) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) & ~kUnreachable);
}

struct SeparateAllocator : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    const c10::Device here(kSeparate, 0);
    if (bytes == 0) return {nullptr, here};
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    std::memset(memory, 0xFF, bytes);  // NaN: reading them before they are written shows
    return {unreachable(memory), memory, &std::free, here};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(reachable(to), reachable(from), bytes);
  }
};

SeparateAllocator& allocator() {
  static SeparateAllocator one;
  return one;
}

struct SeparateGuard : c10::impl::NoOpDeviceGuardImpl<kSeparate> {
  c10::Device exchangeDevice(c10::Device) const override { return here(); }
  c10::Device getDevice() const override { return here(); }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }

 private:
  static c10::Device here() { return {kSeparate, 0}; }
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, here()); }
};

struct SeparateHooks : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
};

bool is_here(const at::Tensor& x) { return x.defined() && x.device().type() == kSeparate; }

/// The same elements as a tensor on the CPU, for the duration of one operator.
at::Tensor on_host(const at::Tensor& x) {
  const auto options = x.options().device(at::kCPU);
  // A tensor that an operator may resize has to own its memory.
  if (x.numel() == 0) return at::empty(x.sizes(), options);
  return at::from_blob(reachable(x.const_data_ptr()), x.sizes(), x.strides(), options);
}

// ---- what LibTorch requires --------------------------------------------------------------------------------------

using MaybeType = std::optional<at::ScalarType>;
using MaybeLayout = std::optional<at::Layout>;
using MaybeDevice = std::optional<at::Device>;
using MaybeFormat = std::optional<at::MemoryFormat>;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty_here(at::IntArrayRef sizes, MaybeType type, MaybeLayout, MaybeDevice, std::optional<bool>,
                      MaybeFormat format) {
  return at::detail::empty_generic(sizes, &allocator(), kKeys, type.value_or(at::kFloat), format);
}

at::Tensor empty_strided_here(at::IntArrayRef sizes, at::IntArrayRef strides, MaybeType type, MaybeLayout, MaybeDevice,
                              std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &allocator(), kKeys, type.value_or(at::kFloat));
}

/// The only way between the two memories.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  (is_here(to) ? on_host(to) : to).copy_(is_here(from) ? on_host(from) : from);
  return to;
}

// ---- every other operator ---------------------------------------------------------------------------------------

/// Runs an operator on the CPU with the same memory.
class OperatorOnHost {
 public:
  OperatorOnHost(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack) {}

  void run() {
    const auto& arguments = op_.schema().arguments();
    first_ = stack_.size() - arguments.size();
    given_.assign(stack_.begin() + static_cast<std::ptrdiff_t>(first_), stack_.end());
    for (std::size_t i = 0; i < given_.size(); ++i) stack_[first_ + i] = moved(given_[i]);
    used_.assign(stack_.begin() + static_cast<std::ptrdiff_t>(first_), stack_.end());
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite()) take_size(i);
    const auto& returns = op_.schema().returns();
    for (std::size_t i = 0; i < returns.size(); ++i) {
      c10::IValue& value = stack_[stack_.size() - returns.size() + i];
      value = returned(value, returns[i]);
    }
  }

 private:
  at::Tensor moved_tensor(const at::Tensor& x) const {
    if (!x.defined()) return x;
    TORCH_CHECK(is_here(x) || x.dim() == 0, op_.schema().name(), ": an operand of ", x.sizes(), " is on ", x.device());
    return is_here(x) ? on_host(x) : x;
  }

  c10::IValue moved(const c10::IValue& value) const {
    if (value.isTensor()) return moved_tensor(value.toTensor());
    if (value.isDevice()) return at::Device(at::kCPU);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& x : value.toTensorVector()) list.push_back(moved_tensor(x));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& x : value.toOptionalTensorVector())
        list.push_back(x ? std::optional(moved_tensor(*x)) : std::nullopt);
      return list;
    }
    return value;
  }

  /// An empty tensor that was written to may have been given elements.
  void take_size(std::size_t i) const {
    if (!given_[i].isTensor() || !is_here(given_[i].toTensor())) return;
    const at::Tensor &own = given_[i].toTensor(), &written = used_[i].toTensor();
    if (own.numel() == written.numel()) return;
    const at::Tensor grown = here(written);
    own.unsafeGetTensorImpl()->set_storage_keep_dtype(grown.storage());
    own.unsafeGetTensorImpl()->set_sizes_and_strides(grown.sizes(), grown.strides());
  }

  static at::Tensor here(const at::Tensor& x) {
    if (!x.defined()) return x;
    const at::Tensor own =
        at::detail::empty_strided_generic(x.sizes(), x.strides(), &allocator(), kKeys, x.scalar_type());
    if (x.numel() > 0) on_host(own).copy_(x);
    return own;
  }

  c10::IValue returned(const c10::IValue& value, const c10::Argument& declared) const {
    if (const c10::AliasInfo* alias = declared.alias_info()) {
      TORCH_CHECK(alias->isWrite(), op_.schema().name(), "  returns a view, which this device does not support");
      const auto& arguments = op_.schema().arguments();
      for (std::size_t i = 0; i < given_.size(); ++i)
        if (arguments[i].alias_info() != nullptr && *arguments[i].alias_info() == *alias) return given_[i];
    }
    if (value.isTensor()) return here(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& x : value.toTensorVector()) list.push_back(here(x));
      return list;
    }
    return value;
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  std::size_t first_ = 0;
  std::vector<c10::IValue> given_, used_;
};

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) { OperatorOnHost(op, *stack).run(); }

/// Registered for its lifetime.
struct SeparateDevice {
  SeparateDevice()
      : fallback(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__),
        operators(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__) {
    c10::register_privateuse1_backend("separate");
    c10::SetAllocator(kSeparate, &allocator());
    static SeparateGuard guard;
    c10::impl::DeviceGuardImplRegistrar registrar(kSeparate, &guard);
    at::RegisterPrivateUse1HooksInterface(new SeparateHooks);  // LibTorch keeps it
    fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
    operators.impl("empty.memory_format", &empty_here);
    operators.impl("empty_strided", &empty_strided_here);
    operators.impl("as_strided", &at::native::as_strided_tensorimpl);
    operators.impl("view", static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef)>(&at::native::view));
    operators.impl("_reshape_alias", static_cast<at::Tensor (*)(const at::Tensor&, at::IntArrayRef, at::IntArrayRef)>(
                                         &at::native::_reshape_alias));
    operators.impl("_copy_from", &copy_from);
  }

  torch::Library fallback, operators;
};

// Before any gradient is computed: LibTorch counts the devices with their own thread only once.
[[maybe_unused]] const at::Device kAtStart = separate_device();

}  // namespace

at::Device separate_device() {
  static const SeparateDevice registered;
  return {kSeparate, 0};
}

}  // namespace carnot::testing
