// graph_no_cuda.cpp: graphs in a build without CUDA.
#include "src/device/graph.h"

namespace wd {

struct Graph::Impl {};

Graph::Graph(Device, bool) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;

void Graph::run(const std::function<void()>& enqueue) { enqueue(); }
void Graph::reset() {}

struct Branches::Impl {};

Branches::Branches(Device) {}
Branches::~Branches() = default;
Branches::Branches(Branches&&) noexcept = default;

void Branches::each(std::size_t count, const std::function<void(std::size_t)>& enqueue) {
  for (std::size_t k = 0; k < count; ++k) enqueue(k);
}

}  // namespace wd
