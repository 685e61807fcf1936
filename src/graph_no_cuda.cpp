// graph_no_cuda.cpp: graphs in a build without CUDA.
#include "src/graph.h"

namespace wd {

struct Graph::Impl {};

Graph::Graph(Device, bool) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;

void Graph::run(const std::function<void()>& enqueue) { enqueue(); }

}  // namespace wd
