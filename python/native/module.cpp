// module.cpp: the environments of wd for Python, as wdtrain._native. Everything that a user sees of it is in
// python/wdtrain/envs.py and what that imports.
#include <ATen/ATen.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>

#include "wd/experiment.h"
#include "wd/outside.h"
#include "wd/trainer.h"
#include "wd/vector_env.h"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

nb::dlpack::dtype type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBool:
      return nb::dtype<bool>();
    case at::kByte:
      return nb::dtype<std::uint8_t>();
    case at::kInt:
      return nb::dtype<std::int32_t>();
    case at::kFloat:
      return nb::dtype<float>();
    default:
      throw std::logic_error("a buffer of a type that has no name in Python");
  }
}

// The tensor's own memory, without a copy; None if it is undefined.
nb::object shared(const at::Tensor& tensor) {
  if (!tensor.defined()) return nb::none();
  const bool cuda = tensor.is_cuda();
  const nb::capsule owner(new at::Tensor(tensor),
                          [](void* kept) noexcept { delete static_cast<at::Tensor*>(kept); });
  std::vector<std::size_t> shape(tensor.sizes().begin(), tensor.sizes().end());
  return nb::cast(nb::ndarray<nb::pytorch>(
      tensor.data_ptr(), shape.size(), shape.data(), owner, tensor.strides().data(), type_of(tensor),
      cuda ? nb::device::cuda::value : nb::device::cpu::value, cuda ? tensor.get_device() : 0));
}

nb::list shared(const std::vector<at::Tensor>& tensors) {
  nb::list all;
  for (const at::Tensor& tensor : tensors) all.append(shared(tensor));
  return all;
}

using Mask = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A mask of replicas that lives on the host.
at::Tensor mask_of(const Mask& mask) {
  return at::from_blob(mask.data(), {static_cast<std::int64_t>(mask.shape(0))}, at::kBool).clone();
}

nb::dict described(const wd::Role& role) {
  nb::dict all, parts;
  for (const wd::ObservationPart& part : role.observation) parts[part.name.c_str()] = part.size;
  std::vector<std::string> names;
  for (int k = 0; k < role.action.width(); ++k)
    names.push_back(role.action.name(static_cast<std::size_t>(k)));
  nb::list bounds;
  for (const wd::Bounds& one : role.action.bounds) bounds.append(nb::make_tuple(one.low, one.high));
  all["name"] = role.name;
  all["count"] = role.count;
  all["observation"] = parts;
  all["heads"] = role.action.heads;
  all["bounds"] = bounds;
  all["names"] = names;
  all["paid_after_leaving"] = role.paid_after_leaving;
  return all;
}

// What put() found.
enum Put { kWritten, kWrong, kOtherType };

// Writes actions, unless one is not below the number of choices that `choices_of` gives for its place.
template <typename Number, typename Choices>
Put put_choices(const Number* from, std::int64_t n, Choices choices_of, std::int32_t* to) {
  bool wrong = false;
  for (std::int64_t i = 0; i < n; ++i)  // a negative number is a large one without its sign
    wrong |= static_cast<std::uint64_t>(from[i]) >= static_cast<std::uint64_t>(choices_of(i));
  if (wrong) return kWrong;
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<std::int32_t>(from[i]);
  return kWritten;
}

template <typename Number>
Put put_numbers(const Number* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i)
    if (!std::isfinite(static_cast<float>(from[i]))) return kWrong;
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
  return kWritten;
}

class Env {
 public:
  using Actions = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;

  Env(const std::string& name, const std::vector<std::string>& settings, int num_envs, std::uint64_t seed,
      int mode, int gpu)
      : experiment_(wd::load_experiment(name, settings)) {
    if (experiment_.device.is_cuda() && gpu > 0)
      experiment_.device = wd::select_device(wd::DeviceRequest::kCuda, gpu);
    wd::ReplicasOptions options = wd::replicas_options(experiment_.config, experiment_.device);
    options.num_envs = num_envs;
    options.seed = seed;
    env_ =
        std::make_unique<wd::VectorEnv>(*experiment_.environment, options, static_cast<wd::AutoReset>(mode));
  }

  wd::VectorEnv& env() const {
    if (!env_) throw wd::UsageError("the environment is closed: make another one");
    return *env_;
  }
  // Ends its processes, if it has any; the buffers live as long as somebody holds them.
  void close() {
    env_.reset();
    experiment_.environment.reset();
  }
  const wd::Spec& spec() const { return env().replicas().spec(); }
  std::string device() const { return wd::to_string(experiment_.device); }

  nb::list roles() const {
    nb::list all;
    for (const wd::VectorEnv::RoleRows& rows : env().roles()) {
      nb::dict role = described(*rows.role);
      role["action"] = shared(rows.action);
      role["observations"] = shared(rows.observation);
      role["action_mask"] = shared(rows.action_mask);
      role["reward"] = shared(rows.reward);
      role["active"] = shared(rows.active);
      role["terminated"] = shared(rows.terminated);
      role["last_observations"] = shared(rows.last_observation);
      role["streams"] = shared(rows.streams);
      all.append(role);
    }
    return all;
  }
  // Writes a role's actions on the CPU, of which the caller has checked how many there are. Writes nothing if
  // one is wrong.
  int put(std::size_t k, const Actions& actions) {
    const wd::VectorEnv::RoleRows& rows = env().roles().at(k);
    const std::int64_t n = rows.action.numel();
    const nb::dlpack::dtype type = actions.dtype();
    const auto as = [&]<typename Number>(Number) { return static_cast<const Number*>(actions.data()); };
    if (rows.role->action.is_continuous()) {
      auto* const to = rows.action.mutable_data_ptr<float>();
      if (type == nb::dtype<float>()) return put_numbers(as(float{}), n, to);
      if (type == nb::dtype<double>()) return put_numbers(as(double{}), n, to);
      return kOtherType;
    }
    auto* const to = rows.action.mutable_data_ptr<std::int32_t>();
    const std::vector<int>& heads = rows.role->action.heads;
    const auto choices = [&](auto* from) {
      if (heads.size() > 1)
        return put_choices(
            from, n, [&](std::int64_t i) { return heads[static_cast<std::size_t>(i) % heads.size()]; }, to);
      return put_choices(from, n, [most = heads[0]](std::int64_t) { return most; }, to);
    };
    if (type == nb::dtype<std::int64_t>()) return choices(as(std::int64_t{}));
    if (type == nb::dtype<std::int32_t>()) return choices(as(std::int32_t{}));
    return kOtherType;
  }

  nb::dict all() const {
    const wd::VectorEnv::ReplicaRows& rows = env().all();
    nb::dict all;
    all["terminated"] = shared(rows.terminated);
    all["truncated"] = shared(rows.truncated);
    all["reset"] = shared(rows.reset);
    all["statistics"] = shared(rows.statistics);
    all["streams"] = shared(rows.streams);
    return all;
  }
  std::vector<std::string> statistics() const {
    std::vector<std::string> names;
    for (const wd::Statistic& statistic : spec().statistics) names.push_back(statistic.field);
    return names;
  }
  std::vector<std::string> streams() const {
    std::vector<std::string> names;
    for (const wd::StreamSpec& stream : spec().streams) names.push_back(stream.name);
    return names;
  }
  // Fields of the state of one replica.
  nb::dict state(int replica) {
    nb::dict all;
    for (const wd::StateField& field : env().replicas().layout().fields)
      if (!field.scratch) all[field.name.c_str()] = env().replicas().read(replica, field);
    return all;
  }

 private:
  wd::Experiment experiment_;
  std::unique_ptr<wd::VectorEnv> env_;
};

}  // namespace

NB_MODULE(_native, m) {
  m.attr("WRITTEN") = static_cast<int>(kWritten);
  m.attr("WRONG") = static_cast<int>(kWrong);
  m.attr("OTHER_TYPE") = static_cast<int>(kOtherType);
  nb::exception<wd::UsageError>(m, "UsageError", nb::module_::import_("wdtrain.files").attr("UsageError"));
  m.def(
      "use_python",
      [](const std::string& interpreter, const std::string& modules) {
        wd::use_python(interpreter, modules, [] {  // Ctrl-C
          const nb::gil_scoped_acquire locked;
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
        });
      },
      "interpreter"_a, "modules"_a);
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Env>(m, "Env")
      .def(nb::init<const std::string&, const std::vector<std::string>&, int, std::uint64_t, int, int>(),
           "name"_a, "settings"_a, "num_envs"_a, "seed"_a, "mode"_a, "gpu"_a, Unlocked())
      .def(
          "step", [](Env& self) { self.env().step(); }, Unlocked())
      .def(
          "reset", [](Env& self) { self.env().reset(); }, Unlocked())
      .def(
          "restart", [](Env& self, std::uint64_t seed) { self.env().restart(seed); }, "seed"_a, Unlocked())
      .def(
          "reset_those",
          [](Env& self, const Mask& mask) {
            const at::Tensor chosen = mask_of(mask);
            const nb::gil_scoped_release unlocked;
            self.env().reset(chosen);
          },
          "mask"_a)
      .def("close", &Env::close, Unlocked())
      .def("put", &Env::put, "role"_a, "actions"_a)
      .def("roles", &Env::roles)
      .def("all", &Env::all)
      .def("state", &Env::state, "replica"_a)
      .def(
          "write",
          [](Env& self, int replica, const std::string& json) { self.env().replicas().write(replica, json); },
          "replica"_a, "json"_a)
      .def_prop_ro("device", &Env::device)
      .def_prop_ro("statistics", &Env::statistics)
      .def_prop_ro("streams", &Env::streams)
      .def_prop_ro("time_limit", [](const Env& self) { return self.spec().time_limit; });
}
