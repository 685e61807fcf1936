// torch_backend.cpp: torch's operations on the emulated GPU: a device of torch (PrivateUse1) whose memory is
// host memory and whose operations are those of the CPU, enqueued on the current emulated stream.
//
// Memory that is freed is filled with NaN when the stream gets there, as if something else used it then.
// Reading it is therefore an error that shows, for example after a graph has kept a pointer to it.
#include "tests/emulation/device/torch_backend.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>
#include <deque>

#include "src/device/strict.h"
#include "src/emulator/streams.h"
#include "wd/error.h"

namespace wd::emulation {

at::Tensor host_view(const at::Tensor& tensor) {
  const auto options = at::TensorOptions().dtype(tensor.dtype()).device(at::kCPU);
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), options);
}

void report(const std::string& what) {
  if (strict::armed()) strict::violation(what);
}

std::atomic<std::size_t> held = 0;

namespace {

std::size_t events = 0;

}  // namespace

std::size_t num_events() { return events; }

namespace {

constexpr at::DeviceType kGpu = at::kPrivateUse1;

Stream& current() { return stream(current_stream()); }
bool on_gpu(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kGpu; }

// Host memory that the emulation itself allocates does not count for --strict_device.
void enqueue(std::function<void()> work) {
  current().enqueue([work = std::move(work)] {
    const NotStrict of_the_device;
    work();
  });
}

// --- Memory --------------------------------------------------------------------------------------------

// Freed memory is given back late, so that old pointers to it find what it was filled with.
class Freed {
 public:
  static Freed& instance() {
    static auto* const freed = new Freed;  // tensors may be freed by destructors of statics
    return *freed;
  }
  void add(void* data, std::size_t bytes) {
    queue_.emplace_back(data, bytes);
    total_ += bytes;
    while (total_ > kMaxBytes) {
      std::free(queue_.front().first);
      total_ -= queue_.front().second;
      queue_.pop_front();
    }
  }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
  std::deque<std::pair<void*, std::size_t>> queue_;
  std::size_t total_ = 0;
};

struct Block {
  void* data;
  std::size_t bytes;
};

void free_block(void* context) {
  const Block block = *static_cast<Block*>(context);
  delete static_cast<Block*>(context);
  const bool captured = current().captures();
  held -= block.bytes;
  enqueue([block] { std::memset(block.data, 0xff, block.bytes); });
  if (!captured) Freed::instance().add(block.data, block.bytes);  // a graph keeps its memory
}

class Allocator final : public at::Allocator {
 public:
  at::DataPtr allocate(std::size_t bytes) override {
    const std::size_t rounded = (bytes / 512 + 1) * 512;
    void* const data = std::aligned_alloc(512, rounded);
    std::memset(data, 0xff, rounded);
    held += rounded;
    return {data, new Block{data, rounded}, &free_block, at::Device(kGpu, 0)};
  }
  at::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    enqueue([=] { std::memcpy(to, from, bytes); });
  }
};

Allocator allocator;
const c10::AllocatorRegisterer<kGpu> registered(&allocator);

// --- Streams and events, for torch's guards -------------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static c10::Stream stream_of(std::size_t number) {
    return c10::Stream(c10::Stream::UNSAFE, at::Device(kGpu, 0), static_cast<c10::StreamId>(number));
  }
  static Stream& of(const c10::Stream& s) { return stream(static_cast<std::size_t>(s.id())); }

  at::DeviceType type() const override { return kGpu; }
  at::Device exchangeDevice(at::Device) const override { return {kGpu, 0}; }
  at::Device getDevice() const override { return {kGpu, 0}; }
  void setDevice(at::Device) const override {}
  void uncheckedSetDevice(at::Device) const noexcept override {}
  c10::Stream getStream(at::Device) const override { return stream_of(current_stream()); }
  c10::Stream getDefaultStream(at::Device) const override { return stream_of(0); }
  c10::Stream getNewStream(at::Device, int) const override { return stream_of(new_stream()); }
  c10::Stream exchangeStream(c10::Stream next) const override {
    const c10::Stream before = stream_of(current_stream());
    set_current_stream(static_cast<std::size_t>(next.id()));
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void** event, const c10::Stream& s, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) {
      *event = new Event;
      ++events;
    }
    static_cast<Event*>(*event)->record(of(s));
  }
  void block(void* event, const c10::Stream& s) const override { static_cast<Event*>(event)->block(of(s)); }
  bool queryEvent(void* event) const override { return static_cast<Event*>(event)->reached(); }
  void synchronizeEvent(void* event) const override { static_cast<Event*>(event)->synchronize(); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
    if (event != nullptr) --events;
  }
  void synchronizeStream(const c10::Stream& s) const override { of(s).synchronize(); }
  double elapsedTime(void* first, void* second, c10::DeviceIndex) const override {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    return Milliseconds(static_cast<Event*>(second)->when() - static_cast<Event*>(first)->when()).count();
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// --- Operations ------------------------------------------------------------------------------------------

// Changes every tensor of the arguments by f.
template <typename F>
at::Stack changed(const at::Stack& arguments, const F& f) {
  at::Stack result;
  for (const c10::IValue& value : arguments) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      result.emplace_back(tensor.defined() ? f(tensor) : tensor);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector())
        list.push_back(tensor.defined() ? f(tensor) : tensor);
      result.emplace_back(list);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList())
        list.push_back(tensor && tensor->defined() ? f(*tensor) : tensor);
      result.emplace_back(list);
    } else if (value.isDevice()) {
      result.emplace_back(at::Device(at::kCPU));
    } else {
      result.push_back(value);
    }
  }
  return result;
}

// A tensor of the host is read when the operation is enqueued, as CUDA does.
at::Stack on_host(const at::Stack& arguments) {
  return changed(arguments, [](const at::Tensor& t) { return on_gpu(t) ? host_view(t) : t.clone(); });
}

// Zeros on the CPU, of the same shapes: an operation with them has results of the same shapes. (Some
// operations cannot be asked for shapes alone, with tensors that have no memory.)
at::Stack with_zeros(const at::Stack& arguments) {
  return changed(arguments, [](const at::Tensor& t) {
    if (!on_gpu(t)) return t;
    return at::empty_strided(t.sizes(), t.strides(), at::TensorOptions().dtype(t.dtype())).zero_();
  });
}

bool writes(const c10::FunctionSchema& schema) {
  for (const c10::Argument& argument : schema.arguments())
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) return true;
  return false;
}

bool returns_tensors(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns())
    if (!result.type()->isSubtypeOf(*c10::TensorType::get())) return false;
  return true;
}

void run_on_host(const c10::OperatorHandle& op, at::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  op.callBoxed(stack);
}

// Gives an `out` that has not its size yet the size of the result.
void resize_outputs(const c10::OperatorHandle& op, const at::Stack& arguments) {
  const auto& schema = op.schema();
  if (op.operator_name().overload_name.find("out") == std::string::npos) return;
  at::Stack shapes = with_zeros(arguments);
  const at::Stack before = shapes;
  run_on_host(op, &shapes);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (schema.arguments()[i].alias_info() == nullptr || !arguments[i].isTensor()) continue;
    const at::Tensor wanted = before[i].toTensor(), out = arguments[i].toTensor();
    if (wanted.sizes() == out.sizes()) continue;
    const at::Tensor fresh = at::empty(wanted.sizes(), out.options());
    out.unsafeGetTensorImpl()->set_storage_keep_dtype(fresh.storage());
    out.unsafeGetTensorImpl()->set_sizes_contiguous(wanted.sizes());
  }
}

// Pushes what an operation returns that changes its arguments: these arguments.
void return_changed(const c10::FunctionSchema& schema, const at::Stack& arguments, at::Stack* stack) {
  for (const c10::Argument& result : schema.returns()) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
      if (alias == nullptr || result.alias_info() == nullptr) continue;
      if (alias->afterSets() != result.alias_info()->afterSets()) continue;
      stack->push_back(arguments[i]);
      break;
    }
  }
}

void count_if_captured(const std::string& name) {
  if (current().captures() && !StandIn::active()) ++captured_launches()[name];
}

void operate(const c10::OperatorHandle& op, c10::DispatchKeySet, at::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  count_if_captured(schema.name());
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  const at::Stack arguments(first, stack->end());
  stack->erase(first, stack->end());
  if (!returns_tensors(schema)) report(concat("the host reads the result of ", schema.name()));
  const NotStrict emulation;
  if (!returns_tensors(schema)) {
    current().synchronize();
    at::Stack host = on_host(arguments);
    run_on_host(op, &host);
    stack->insert(stack->end(), host.begin(), host.end());
    return;
  }
  if (writes(schema)) {
    resize_outputs(op, arguments);
    enqueue([op, host = on_host(arguments)] {
      at::Stack used = host;
      run_on_host(op, &used);
    });
    return return_changed(schema, arguments, stack);
  }
  at::Stack shapes = with_zeros(arguments);
  run_on_host(op, &shapes);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : shapes) {
    const at::Tensor& shape = value.toTensor();
    const at::Tensor result = at::empty_strided(
        shape.sizes(), shape.strides(), at::TensorOptions().dtype(shape.dtype()).device(at::Device(kGpu, 0)));
    stack->emplace_back(result);
    results.push_back(host_view(result));
  }
  enqueue([op, host = on_host(arguments), results] {
    at::Stack used = host;
    run_on_host(op, &used);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].copy_(used[i].toTensor());
  });
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           dtype.value_or(at::kFloat));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  const bool within = on_gpu(from) && on_gpu(to);
  count_if_captured("aten::copy_");
  if (!within) report(concat("a copy of ", from.nbytes(), " bytes from ", on_gpu(from) ? "device" : "host"));
  const NotStrict emulation;
  if (on_gpu(to)) {
    WD_CHECK(within || !current().captures(), "a copy from the host is captured");
    enqueue([from = within ? host_view(from) : from.clone(), to = host_view(to)] { to.copy_(from); });
  } else {
    current().synchronize();
    to.copy_(host_view(from));
  }
  return to;
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  report("the host reads a number of the device");
  const NotStrict emulation;
  current().synchronize();
  return host_view(tensor).item();
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&operate>()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_local_scalar_dense", &local_scalar);
  m.impl("view", &at::native::view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
}

}  // namespace

StandIn::StandIn() {
  count_if_captured("product");
  ++depth;
}

}  // namespace wd::emulation
