// entities_test.cpp: networks that read entities, on this machine's devices.
#include "tests/nets/entities.h"

#include <gmock/gmock.h>

#include "tests/kernels/cuda_memory.h"
#include "wd/error.h"

namespace wd {
namespace {

TEST(Entities, HaveTheOutputsAndGradientsOfTorch) {
  for (const EntitiesCase& c : entities_cases()) {
    expect_entities_as_torch(c, kFp32, {});
    expect_entities_as_torch(c, kBf16, {});
    expect_entities_as_torch(c, kBf16, {}, at::kBFloat16);
  }
}

TEST(Entities, HaveTheOutputsAndGradientsOfTorchOnAGpu) {
  WD_SKIP_WITHOUT_GPU();
  for (const EntitiesCase& c : entities_cases())
    for (const Precision precision : {kFp32, kBf16})
      expect_entities_as_torch(c, precision, {DeviceKind::kCuda, 0});
}

// A game of 4 + 3 agents in which all see all: rows and the table that they follow from.
struct Table {
  static constexpr int kAgents = 7, kFeatures = 4, kRelative = 3, kOwn = 3, kUnits = 5;
  PolicyLayout rows_layout, table_layout;
  at::Tensor rows, table;

  Table() {
    const int others = kAgents - 1;
    rows_layout.name = "seekers";
    rows_layout.agent = {0, 2, 3, 6};
    rows_layout.num_agents = 4;
    rows_layout.all_agents = kAgents;
    rows_layout.observation_parts = {{"x", others},    {"y", others}, {"turned", others},
                                     {"kind", others}, {"time", 1},   {"heading", 2}};
    rows_layout.observation_size = kFeatures * others + kOwn;
    rows_layout.entities.lists = {{.name = "agents",
                                   .count = others,
                                   .x = {"x"},
                                   .y = {"y"},
                                   .heading = {"turned"},
                                   .kind = {"kind"},
                                   .kinds = 2}};
    rows_layout.entities.heading_cos = {"heading", 0};
    rows_layout.entities.heading_sin = {"heading", 1};
    table_layout = rows_layout;
    table_layout.table = {kFeatures, kRelative, kOwn};
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{4});
    table = at::randn({kUnits, kAgents, kFeatures + kOwn}, generator, at::TensorOptions().dtype(at::kFloat));
    for (int i = 0; i < kAgents; ++i) table.select(1, i).select(1, 3).fill_(i < 4 ? 1.0f : 0.0f);
    rows = at::zeros({kUnits, 4, rows_layout.observation_size}, at::kFloat);
    for (int slot = 0; slot < 4; ++slot) {
      const int i = rows_layout.agent[static_cast<std::size_t>(slot)];
      for (int f = 0; f < kFeatures; ++f) {
        for (int j = 0, k = 0; j < kAgents; ++j) {
          if (j == i) continue;
          at::Tensor value = table.select(1, j).select(1, f).clone();
          if (f < kRelative) value -= table.select(1, i).select(1, f);
          rows.select(1, slot).select(1, f * others + k++).copy_(value);
        }
      }
      rows.select(1, slot)
          .narrow(1, kFeatures * others, kOwn)
          .copy_(table.select(1, i).narrow(1, kFeatures, kOwn));
    }
  }
};

TEST(Entities, OfATableAreThoseOfItsRows) {
  const Table data;
  ModelSettings model = entities_model({"", true, 2, kMeanAndMaxPool, 1});
  std::vector<at::Tensor> outputs, gradients;
  for (const PolicyLayout* layout : {&data.rows_layout, &data.table_layout}) {
    const auto network = network_maker(*layout, model, input_parts(*layout), 3, {}, kFp32)();
    const at::Tensor flat = at::zeros({network->num_parameters()}, at::kFloat), sums = at::zeros_like(flat);
    network->initialize(flat, kOrthogonal, 1.0, 5);
    network->bind(flat, {});
    const auto workspace = network->make_workspace(20, true);
    const at::Tensor observation = layout->as_table() ? data.table.flatten(0, 1) : data.rows.flatten(0, 1);
    network->forward({{observation}, {}, {}}, *workspace);
    const auto gradient = network->make_gradient(sums);
    network->backward({{observation}, {}, {}}, at::ones({20, 3}, at::kFloat), *workspace, gradient.get());
    outputs.push_back(workspace->output.clone());
    gradients.push_back(sums);
  }
  EXPECT_GT(outputs[0].abs().max().item<float>(), 0.1f);
  EXPECT_TRUE(at::equal(outputs[0], outputs[1]));
  EXPECT_TRUE(at::equal(gradients[0], gradients[1]));
}

// The order of the others does not matter, except to ties.
TEST(Entities, DoNotDependOnTheOrderOfThings) {
  const PolicyLayout layout = crowd_layout(true);
  const ModelSettings model = entities_model({"", true, 3, kMeanAndMaxPool, 2});
  const auto network = network_maker(layout, model, input_parts(layout), 3, {}, kFp32)();
  const at::Tensor flat = at::zeros({network->num_parameters()}, at::kFloat);
  network->initialize(flat, kOrthogonal, 1.0, 5);
  network->bind(flat, {});
  const at::Tensor rows = crowd_rows(layout, 6);
  at::Tensor shuffled = rows.clone();
  std::int64_t begin = 0;
  for (const ObservationPart& part : layout.observation_parts) {
    if (part.size == 7) shuffled.narrow(1, begin, 7).copy_(rows.narrow(1, begin, 7).flip(1));
    begin += part.size;
  }
  const auto workspace = network->make_workspace(6, false);
  network->forward({{rows}, {}, {}}, *workspace);
  const at::Tensor output = workspace->output.clone();
  network->forward({{shuffled}, {}, {}}, *workspace);
  EXPECT_FALSE(at::equal(rows, shuffled));
  EXPECT_TRUE(at::allclose(output, workspace->output, 1e-5, 1e-6));
}

TEST(Entities, AreRefusedWhereTheEnvironmentDeclaresNone) {
  const auto message = [](const PolicyLayout& layout) {
    try {
      network_maker(layout, entities_model({""}), input_parts(layout), 1, {}, kFp32)();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  PolicyLayout layout = crowd_layout(true);
  EXPECT_EQ(message(layout), "accepted");
  layout.one_reading = false;
  EXPECT_THAT(message(layout), testing::HasSubstr("give each role a policy of its own"));
  layout = crowd_layout(true);
  layout.entities.lists.clear();
  EXPECT_THAT(message(layout), testing::HasSubstr("policy 'crowd': model.input = entities: the environment"));
  layout = crowd_layout(true);
  layout.entities.lists[0].x.part = "nowhere";
  EXPECT_THAT(message(layout), testing::HasSubstr("no part 'nowhere'"));
}

}  // namespace
}  // namespace wd
