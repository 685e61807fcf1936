// backends.h: the two backends that move tensors between ranks, each created in its own source file.
#pragma once

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "wd/detail/membership.h"
#include "wd/device.h"
#include "wd/process_group.h"

namespace wd {

using Backend = c10::intrusive_ptr<c10d::Backend>;
using Store = c10::intrusive_ptr<c10d::Store>;

// `address`: the address of this machine on the network that leads to rank 0. If GLOO_SOCKET_IFNAME names an
// interface, that one is used instead.
Backend make_gloo(const Store& store, const Membership& self, const std::string& address,
                  std::chrono::milliseconds timeout);

// NCCL's. Set by the library that has the GPU.
using MakeGpuBackend = Backend(const Store& store, const Membership& self, Device device,
                               std::chrono::milliseconds timeout);
extern MakeGpuBackend* make_gpu_backend;

// For tests: a group of this process alone that ends this backend as it would end NCCL.
ProcessGroup group_around(const Backend& accelerator);

}  // namespace wd
