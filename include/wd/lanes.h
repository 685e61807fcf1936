// lanes.h: passes over the rows of a batch, block by block, in lanes whose sums are added in lane order. So
// results depend only on the number of rows, and not on threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "wd/detail/blocks.h"
#include "wd/model.h"

namespace wd {

// What the passes of a lane do with a model.
struct ModelUse {
  enum Depth {
    kForward,  // only forward()
    kInputs,   // backward() too, for gradients of the inputs
    kLearns,   // backward() adds to the gradients of the model
  };
  const Model* model;
  Depth depth;
  bool together = false;  // the pass runs Model::together() in place of the networks, if it is not null
};

// Memory that a pass needs for its rows: `count` tensors [rows of a block, columns] float32, one after
// another. As output: laid out like a network's outputs (make_output), of which it is the gradient. With
// shared_by, so many rows of the block have one row here.
struct RowMemory {
  const char* name;
  std::int64_t columns;
  bool as_output = false;
  int count = 1;
  int shared_by = 1;
};

// The memory of one lane. Rows are those of the current block, from 0.
class Lane {
 public:
  Network::Workspace& of(const Network& network) const { return *part(network).workspace; }
  // Where backward() adds; null if the network's model is not learned here.
  Network::Gradient* gradient(const Network& network) const { return part(network).gradient.get(); }
  // Where the gradient of the model's numbers is added.
  const at::Tensor& numbers(const Model& model) const;
  // Model::together(), if this pass runs it; otherwise null.
  const Network* together(const Model& model) const;
  // The RowMemory of this name, of which this is the k-th tensor.
  const at::Tensor& rows(std::string_view name, int k = 0) const;
  // All of its tensors, [count, rows of a block, columns].
  const at::Tensor& all_rows(std::string_view name) const;
  // [sums, rows of a block]: the numbers of each row that Lanes::run() sums, written by the pass.
  const at::Tensor& row_sums() const { return row_sums_; }

 private:
  friend class Lanes;
  struct Part {
    const Network* network;
    std::unique_ptr<Network::Workspace> workspace;
    std::unique_ptr<Network::Gradient> gradient;
  };
  struct Learned {
    const Model* model;
    at::Tensor gradients, numbers;  // the first lane's gradients are those of the model
    bool clears = true;             // gradients before a pass: backward() does not overwrite all
  };
  struct Rows {
    const char* name;
    at::Tensor all;
    std::vector<at::Tensor> each;  // views of `all`
  };
  // Clears what the first pass does not overwrite, and what it would have if there was none.
  void begin();
  void end();
  const Part& part(const Network& network) const;
  const Rows& rows_called(std::string_view name) const;

  std::vector<Part> parts_;
  std::vector<Learned> learned_;
  std::vector<Rows> rows_;
  at::Tensor row_sums_;
  at::Tensor partial_;  // working memory of reductions
  at::Tensor totals_;   // [sums] float64
  bool is_new_ = true;  // no block has been passed over since begin()
};

class Lanes {
 public:
  // One block of one lane: rows [begin, end).
  using Pass = std::function<void(Lane& lane, std::int64_t begin, std::int64_t end)>;

  // `sums`: numbers that a pass writes for each row, at most kMaxSums. The models must outlive the lanes.
  Lanes(std::vector<ModelUse> models, int sums, std::vector<RowMemory> rows, Device device);

  // Allocates what passes over these blocks need, unless it is there.
  void reserve(const Blocks& blocks);

  // Calls the pass for every block. Sets the gradients of the models that learn to what the passes added.
  // Returns the sums [sums] float64 on the device over all rows, which are valid until the next call.
  // Enqueues on CUDA. Calls should_stop before each block, from any thread; once it returns true, the
  // remaining blocks are skipped and the result is meaningless.
  at::Tensor run(const Blocks& blocks, const Pass& pass, const std::function<bool()>& should_stop = {});

 private:
  void make(Lane& lane, std::int64_t rows, bool first) const;
  void sum(std::int64_t count, const std::function<const at::Tensor&(const Lane&)>& tensor) const;
  void reduce(std::int64_t count);

  std::vector<ModelUse> models_;
  int sums_;
  std::vector<RowMemory> memory_;
  Device device_;
  std::int64_t rows_ = 0;  // of the lanes' blocks
  std::vector<Lane> lanes_;
  at::Tensor totals_;  // [sums] float64: the first lane's
};

}  // namespace wd
