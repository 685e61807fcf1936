// guarded_replica.h: one replica whose fields, rewards, actions and rows lie in guarded memory.
#pragma once

#include <string>
#include <vector>

#include "src/replicas/check/faults.h"
#include "src/replicas/check/guarded_memory.h"
#include "src/replicas/check/world.h"
#include "wd/detail/apart.h"

namespace wd {

class GuardedReplica {
 public:
  // The side of every array on which its very next value is out of reach; on the other side there may be some
  // up to a page's end.
  enum class Edge { kBegin, kEnd };

  explicit GuardedReplica(const Environment& environment, Edge edge);

  // One step of the world's replica 0, as World::step() makes it. `role`: the one beside whose actions
  // others' are out of reach.
  void step(World& world, std::size_t role);

  // Where step() is, for people: of another thread's step only nearly so.
  std::string place() const;
  // What a fault in step() means: who touched what, and what there is.
  std::string meaning(const Fault& fault) const;

 private:
  struct Field {
    StateField field;
    GuardedMemory memory;
  };
  struct Rows {  // of one role
    GuardedMemory observation, mask;
    std::size_t observation_pitch, mask_pitch;  // [bytes]
  };
  struct ActionRows {
    GuardedMemory discrete, continuous;
  };

  GuardedMemory array(std::size_t bytes) const;
  GuardedMemory rows(std::size_t count, std::size_t bytes, std::size_t& pitch) const;
  ActionRows actions(std::size_t role) const;
  int first_agent(std::size_t role) const;
  void load(const World& world, std::size_t role);
  void store(World& world) const;
  std::string agent_name(std::int64_t agent) const;
  std::string field_meaning(const Field& field, const void* address) const;
  std::string row_meaning(const Role& role, const char* what, std::size_t pitch, std::size_t width,
                          int entries, std::int64_t offset) const;
  std::string action_meaning(const char* call, bool continuous, std::int64_t offset) const;

  const Environment& environment_;
  Edge edge_;
  Spec spec_;
  StateLayout layout_;
  std::size_t action_pitch_;  // [bytes] from one head to the next
  std::vector<Field> fields_;
  std::vector<Rows> rows_;
  std::vector<ActionRows> actions_;  // by the role that is looked at
  GuardedMemory reward_;
  CheckPlace place_;
  ApartMemory memory_;
};

}  // namespace wd
