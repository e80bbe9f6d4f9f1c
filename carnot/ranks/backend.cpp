#include "carnot/ranks/backend.h"

#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO  // LibTorch's header declares nothing without
#endif

#include <cstdlib>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "carnot/ranks/first_line.h"

namespace carnot {
namespace {

std::shared_ptr<gloo::transport::Device> device_at(const std::string& address) {
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"))
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  return c10d::ProcessGroupGloo::createDeviceForHostname(address);
}

}  // namespace

Result<c10::intrusive_ptr<c10d::Backend>> make_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                       const BackendPlace& place) {
  try {
    auto options = c10d::ProcessGroupGloo::Options::create(place.connect_within);
    options->devices.push_back(device_at(place.address));
    return c10::intrusive_ptr<c10d::Backend>(c10::make_intrusive<c10d::ProcessGroupGloo>(
        c10::make_intrusive<c10d::PrefixStore>("gloo", store), place.rank, place.size, options));
  } catch (const std::exception& error) {
    return Error{first_line(error.what())};
  }
}

}  // namespace carnot
