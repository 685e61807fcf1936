// model_test.cpp: a target is a copy with memory of its own; lanes refuse what they were not made for.
#include "wd/model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "kernels/record.h"
#include "src/nets/mlp.h"
#include "wd/lanes.h"

namespace wd {
namespace {

Model critics(Precision precision) {
  const auto critic = [=]() -> std::unique_ptr<Network> {
    PolicyLayout layout;
    layout.num_agents = 1;
    const MlpShape shape{.parts = {{"observation", 3}},
                         .hidden = {4},
                         .outputs = 1,
                         .activation = kTanh,
                         .precision = precision};
    if (precision == kBf16) return std::make_unique<MlpBf16>(shape, layout, Device{});
    return std::make_unique<MlpCpu>(shape, layout, Device{});
  };
  Model model({critic, critic}, 2, {}, precision);
  for (std::size_t k = 0; k < 2; ++k)
    model.network(k).initialize(model.section(model.parameters(), k), kOrthogonal, 1.0, 5 + k);
  model.numbers(model.parameters()).fill_(0.5f);
  model.refresh_shadow();
  return model;
}

at::Tensor output_of(const Model& model, std::size_t k) {
  const auto workspace = model.network(k).make_workspace(2, false);
  model.network(k).forward({{at::full({2, 3}, 0.5f)}, {}, {}}, *workspace);
  return workspace->output.clone();
}

TEST(Model, ATargetIsACopyThatStaysAsItIs) {
  for (const Precision precision : {kFp32, kBf16}) {
    Model model = critics(precision);
    const Model target = model.like();
    EXPECT_TRUE(at::equal(target.parameters(), model.parameters()));
    EXPECT_FALSE(target.gradients().defined());
    const at::Tensor before[] = {output_of(model, 0), output_of(model, 1)};
    EXPECT_FALSE(at::equal(before[0], before[1])) << "both networks are the same: nothing is tested";
    model.parameters().mul_(2.0);
    model.refresh_shadow();
    for (const std::size_t k : {0u, 1u}) {
      EXPECT_TRUE(at::equal(output_of(target, k), before[k])) << k;
      EXPECT_FALSE(at::equal(output_of(model, k), before[k])) << k;
    }
  }
}

// Polyak averaging, and with tau = 1 a copy; the shadow and what networks derive from it follow.
TEST(Model, ATargetFollows) {
  for (const Precision precision : {kFp32, kBf16}) {
    Model model = critics(precision), target = model.like();
    const at::Tensor before = target.parameters().clone();
    model.initialize(kOrthogonal, 1.0, 99);
    model.numbers(model.parameters()).fill_(-3.0f);
    target.follow(model, 0.25f);
    EXPECT_TRUE(at::allclose(target.parameters(), 0.75 * before + 0.25 * model.parameters(), 1e-6, 1e-7));
    EXPECT_FALSE(at::allclose(before, model.parameters(), 1e-2, 1e-2)) << "nothing was moved";
    target.follow(model, 1.0f);
    EXPECT_TRUE(at::equal(target.parameters(), model.parameters()));
    EXPECT_TRUE(at::equal(output_of(target, 1), output_of(model, 1)));
  }
}

TEST(Model, NamesItsParameters) {
  const Model model = critics(kFp32);
  std::vector<std::string> names;
  std::int64_t count = 0;
  for (const NamedTensor& named : model.named_parameters()) {
    names.push_back(named.name);
    count += named.tensor.numel();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"0.layers.0.weight", "0.layers.0.bias", "0.head.weight",
                                             "0.head.bias", "1.layers.0.weight", "1.layers.0.bias",
                                             "1.head.weight", "1.head.bias", "numbers"}));
  EXPECT_EQ(count, 2 * (3 * 4 + 4 + 4 + 1) + 2);
}

TEST(Lanes, RefuseWhatTheyWereNotMadeFor) {
  const Model model = critics(kFp32), other = critics(kFp32);
  Lanes lanes({{&model, ModelUse::kForward}}, 0, {{"grad", 1}}, {});
  const Blocks blocks = Blocks::of(4, false, 64, 1);
  EXPECT_NO_THROW(lanes.run(blocks, [&](Lane& lane, std::int64_t, std::int64_t) {
    EXPECT_EQ(lane.gradient(model.network(1)), nullptr);
    EXPECT_EQ(lane.rows("grad").size(1), 1);
  }));
  EXPECT_ANY_THROW(
      lanes.run(blocks, [&](Lane& lane, std::int64_t, std::int64_t) { lane.of(other.network(0)); }));
  EXPECT_ANY_THROW(lanes.run(blocks, [&](Lane& lane, std::int64_t, std::int64_t) { lane.rows("action"); }));
  EXPECT_ANY_THROW(lanes.run(blocks, [&](Lane& lane, std::int64_t, std::int64_t) { lane.numbers(model); }));
  EXPECT_ANY_THROW(Lanes({}, kMaxSums + 1, {}, {}));
}

}  // namespace
}  // namespace wd
