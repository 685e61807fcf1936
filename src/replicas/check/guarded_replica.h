// guarded_replica.h: one replica whose fields, rewards, actions and rows are in guarded memory.
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
  // The edge of every array at which the very next value is out of reach. Beyond the other edge, some values
  // up to the end of a page may be accessible.
  enum class Edge { kBegin, kEnd };

  explicit GuardedReplica(const Environment& environment, Edge edge);

  // Makes one step of the world's replica 0, as World::step() does. `role`: its actions border on
  // inaccessible memory, except next to roles with the same kind of action.
  void step(World& world, std::size_t role);

  // Describes where step() is; approximate if another thread is running it.
  std::string place() const;
  // Explains a fault in step(): which code accessed what, and which indices exist.
  std::string meaning(const MemoryFault& fault) const;

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
  std::vector<ActionRows> actions_;  // by the `role` of step()
  GuardedMemory reward_;
  CheckPlace place_;
  ApartMemory memory_;
};

}  // namespace wd
