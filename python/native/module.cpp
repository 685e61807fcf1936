// module.cpp: the environments of wd for Python, as functions that python/wdtrain/native.py calls by ctypes.
// Everything that a user sees of it is in python/wdtrain/envs.py and what that imports.
#include <ATen/ATen.h>
#include <ATen/DLConvertor.h>

#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "wd/experiment.h"
#include "wd/outside.h"
#include "wd/trainer.h"
#include "wd/vector_env.h"

// What is used of Python's stable interface, so that one library, built without Python's headers, serves
// every Python: the process has these functions.
extern "C" {
using PyObject = struct _object;
[[gnu::weak]] extern PyObject* PyExc_RuntimeError;
[[gnu::weak]] void PyErr_SetString(PyObject* type, const char* text);
[[gnu::weak]] int PyErr_CheckSignals();
[[gnu::weak]] void* PyEval_SaveThread();
[[gnu::weak]] void PyEval_RestoreThread(void* state);
[[gnu::weak]] int PyGILState_Ensure();
[[gnu::weak]] void PyGILState_Release(int state);
[[gnu::weak]] PyObject* PyCapsule_New(void* pointer, const char* name, void (*destroy)(PyObject*));
[[gnu::weak]] void* PyCapsule_GetPointer(PyObject* capsule, const char* name);
[[gnu::weak]] PyObject* PyBool_FromLong(long value);
[[gnu::weak]] void Py_DecRef(PyObject* object);
struct PyMethodDef {
  const char* name;
  PyObject* (*function)(PyObject*, PyObject*);
  int flags;
  const char* help;
};
[[gnu::weak]] PyObject* PyCFunction_NewEx(PyMethodDef* method, PyObject* self, PyObject* module);
}

namespace {

using Json = nlohmann::ordered_json;

PyObject* usage_error = nullptr;
struct PythonError {};  // is set already

// Does the work without Python's lock. An exception becomes Python's, which ctypes.PyDLL raises. Returns
// whether there was none.
template <typename Work>
bool unlocked(const Work& work) {
  bool done = false;
  PyObject* type = nullptr;
  std::string text;
  void* const state = PyEval_SaveThread();
  try {
    work();
    done = true;
  } catch (const PythonError&) {
  } catch (const std::exception& error) {
    type = dynamic_cast<const wd::UsageError*>(&error) != nullptr ? usage_error : PyExc_RuntimeError;
    text = error.what();
  }
  PyEval_RestoreThread(state);
  if (type != nullptr) PyErr_SetString(type, text.c_str());
  return done;
}

using Call = std::function<bool()>;
constexpr int kNoArguments = 4;  // METH_NOARGS

PyObject* called(PyObject* capsule, PyObject*) {
  const Call& call = *static_cast<Call*>(PyCapsule_GetPointer(capsule, nullptr));
  bool result = false;
  return unlocked([&] { result = call(); }) ? PyBool_FromLong(result ? 1 : 0) : nullptr;
}

class Env {
 public:
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
    describe();
  }

  wd::VectorEnv& env() const {
    if (!env_) throw wd::UsageError("the environment is closed: make another one");
    return *env_;
  }
  // Ends its processes, if it has any; the buffers live as long as somebody holds them.
  void close() {
    env_.reset();
    experiment_.environment.reset();
    tensors.clear();
  }
  // Writes a role's actions on the CPU: int64, or double if they are continuous. Writes nothing if one is no
  // choice or not finite.
  bool put(std::size_t k, const void* actions) const {
    const wd::VectorEnv::RoleRows& rows = env().roles().at(k);
    const auto n = static_cast<std::size_t>(rows.action.numel());
    bool wrong = false;
    if (rows.role->action.is_continuous()) {
      const auto* const from = static_cast<const double*>(actions);
      auto* const to = rows.action.mutable_data_ptr<float>();
      for (std::size_t i = 0; i < n; ++i) wrong |= !std::isfinite(static_cast<float>(from[i]));
      for (std::size_t i = 0; i < n && !wrong; ++i) to[i] = static_cast<float>(from[i]);
      return !wrong;
    }
    const auto* const from = static_cast<const std::uint64_t*>(actions);  // a negative number is a large one
    auto* const to = rows.action.mutable_data_ptr<std::int32_t>();
    const std::vector<int>& heads = rows.role->action.heads;
    for (std::size_t h = 0; h < heads.size(); ++h)
      for (std::size_t i = h; i < n; i += heads.size())
        wrong |= from[i] >= static_cast<std::uint64_t>(heads[h]);
    for (std::size_t i = 0; i < n && !wrong; ++i) to[i] = static_cast<std::int32_t>(from[i]);
    return !wrong;
  }

  std::string description;          // of the environment and its buffers, each by its number among `tensors`
  std::vector<at::Tensor> tensors;  // share their memory with Python's
  std::deque<Call> calls;

 private:
  // Null for each that is undefined.
  Json numbers_of(const std::vector<at::Tensor>& some) {
    Json all = Json::array();
    for (const at::Tensor& tensor : some) {
      all.push_back(tensor.defined() ? Json(tensors.size()) : Json());
      if (tensor.defined()) tensors.push_back(tensor);
    }
    return all;
  }
  Json described(const wd::VectorEnv::RoleRows& rows) {
    const wd::ActionSpace& action = rows.role->action;
    Json parts = Json::object(), names = Json::array(), bounds = Json::array();
    for (const wd::ObservationPart& part : rows.role->observation) parts[part.name] = part.size;
    for (int k = 0; k < action.width(); ++k) names.push_back(action.name(static_cast<std::size_t>(k)));
    for (const wd::Bounds& one : action.bounds) bounds.push_back({one.low, one.high});
    Json role = {{"name", rows.role->name}, {"count", rows.role->count}, {"observation", parts}};
    role.update({{"heads", action.heads}, {"bounds", bounds}, {"names", names}});
    role["paid_after_leaving"] = rows.role->paid_after_leaving;
    return {role,
            numbers_of({rows.action, rows.observation, rows.action_mask, rows.reward, rows.active,
                        rows.terminated, rows.last_observation}),
            numbers_of(rows.streams)};
  }
  void describe() {
    const wd::Spec& spec = env().replicas().spec();
    const wd::VectorEnv::ReplicaRows& rows = env().all();
    Json roles = Json::array(), statistics = Json::array(), streams = Json::array(), fields = Json::array();
    for (const wd::VectorEnv::RoleRows& role : env().roles()) roles.push_back(described(role));
    for (const wd::Statistic& statistic : spec.statistics) statistics.push_back(statistic.field);
    for (const wd::StreamSpec& stream : spec.streams) streams.push_back(stream.name);
    for (const wd::StateField& field : env().replicas().layout().fields)
      fields.push_back(field.scratch ? Json() : Json(field.name));
    description = Json{wd::to_string(experiment_.device),
                       spec.time_limit,
                       statistics,
                       streams,
                       fields,
                       roles,
                       numbers_of({rows.terminated, rows.truncated, rows.reset, rows.statistics}),
                       numbers_of(rows.streams)}
                      .dump();
  }

  wd::Experiment experiment_;
  std::unique_ptr<wd::VectorEnv> env_;
};

}  // namespace

extern "C" {
void wd_start(PyObject* error, const char* interpreter, const char* modules) {
  usage_error = error;
  wd::use_python(interpreter, modules, [] {  // Ctrl-C
    const int state = PyGILState_Ensure();
    const int failed = PyErr_CheckSignals();
    PyGILState_Release(state);
    if (failed != 0) throw PythonError();
  });
}
Env* wd_make(const char* name, const char** settings, int count, int num_envs, std::uint64_t seed, int mode,
             int gpu) {
  Env* made = nullptr;
  unlocked([&] { made = new Env(name, {settings, settings + count}, num_envs, seed, mode, gpu); });
  return made;
}
void wd_delete(Env* self) {
  unlocked([&] { delete self; });
}
void wd_close(Env* self) {
  unlocked([&] { self->close(); });
}
const char* wd_description(const Env* self) { return self->description.c_str(); }
PyObject* wd_tensor(const Env* self, int k) {
  return PyCapsule_New(at::toDLPack(self->tensors[k]), "dltensor", nullptr);
}
void wd_reset(Env* self, bool* mask, std::int64_t count) {  // all replicas, if there is no mask
  unlocked([&] { self->env().reset(mask ? at::from_blob(mask, {count}, at::kBool).clone() : at::Tensor()); });
}
void wd_restart(Env* self, std::uint64_t seed) {
  unlocked([&] { self->env().restart(seed); });
}
// Of what Python does in every step, a function: calling it by ctypes would take a microsecond more. It puts
// the actions that are given, or steps if there are none.
PyObject* wd_call(Env* self, int role, const void* given) {
  Call& call = self->calls.emplace_back([=] {
    if (given != nullptr) return self->put(static_cast<std::size_t>(role), given);
    self->env().step();
    return true;
  });
  static PyMethodDef method{"call", called, kNoArguments, nullptr};
  PyObject* const capsule = PyCapsule_New(&call, nullptr, nullptr);
  PyObject* const made = PyCFunction_NewEx(&method, capsule, nullptr);
  Py_DecRef(capsule);
  return made;
}
// One field of the state of one replica.
PyObject* wd_state(Env* self, int replica, int field) {
  at::Tensor numbers = at::empty({0}, at::kDouble);
  unlocked([&] {
    const auto& fields = self->env().replicas().layout().fields;
    numbers = at::tensor(self->env().replicas().read(replica, fields.at(static_cast<std::size_t>(field))),
                         at::kDouble);
  });
  return PyCapsule_New(at::toDLPack(numbers), "dltensor", nullptr);
}
void wd_write(Env* self, int replica, const char* json) {
  unlocked([&] { self->env().replicas().write(replica, json); });
}
}
