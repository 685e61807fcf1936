// supervise.h: the launcher: one worker process a device, started together, watched, and stopped together.
#pragma once

#include <string>
#include <vector>

namespace wd {

struct LaunchOptions {
  int num_workers = 1;  // on this node
  bool gpus = false;    // each worker sees one GPU, in the order of CUDA_VISIBLE_DEVICES
  int num_nodes = 1;
  int node_index = 0;  // in [0, num_nodes)
  // Several nodes: tcp://HOST:PORT of node 0, or file:///FOLDER that all nodes see.
  std::string rendezvous = {};
  // Several nodes: the same on all; empty: "default", and drawn at random for one node.
  std::string run_id = {};
  int max_restarts = 0;      // of the whole gang, from the newest checkpoint
  double grace_seconds = 5;  // from SIGTERM to SIGKILL, once a worker has failed
  // Silence that counts as a hang, by phase.
  double start_seconds = 300, step_seconds = 120, evaluation_seconds = 600, checkpoint_seconds = 600;
};

// Throws UsageError where options contradict each other, or ask for more GPUs than this machine shows.
void check(const LaunchOptions& options);

// GPUs that a worker of this process could use, counted by the driver's management library without a CUDA
// context; names them by what CUDA_VISIBLE_DEVICES must say. Throws UsageError where CUDA_VISIBLE_DEVICES
// names a device that is not there.
std::vector<std::string> visible_gpus();

// Runs `command` (its first word a program's path) once a worker, with torchrun's environment variables,
// until all have ended. The first failure ends all of them. Returns the exit code: 0 all finished; the first
// failing worker's code, or 128 + n where signal n ended it; 124 it hung; 129, 130 or 143 where this process
// was told to stop by HUP, INT or TERM. Throws UsageError as check() does. To be called while this process
// has one thread, ignores SIGPIPE (streams.h) and has not touched CUDA.
int supervise(const LaunchOptions& options, const std::vector<std::string>& command);

}  // namespace wd
