// serving/tinker/tinker_service.h -- training as a service: sessions, the adapters that they train over one base model,
// and the policies that they sample from.
//
// Requests that compute return the id under which their reply will be found; the same request sent twice has the same
// id and is done once. A model's requests are done in the order of their numbers (seq_id).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "carnot/serving/loaded_model.h"
#include "carnot/serving/tinker/requests.h"
#include "carnot/serving/tinker/trained_adapter.h"
#include "carnot/serving/tinker/weight_store.h"
#include "carnot/serving/tinker/work_queue.h"

namespace carnot {

struct TinkerOptions {
  std::string name{};             ///< of the base model
  std::filesystem::path store{};  ///< folder of saved weights
  int models = 8;                 ///< adapters in training at a time
  int micro_batch_tokens = 4096;  ///< rows of a forward pass
  TextServiceOptions texts{};     ///< `queue`: requests of any kind that may wait
};

/// Why a request was not taken.
struct TinkerRefusal {
  int status = 400;  ///< of HTTP
  std::string message{};
};
template <class Value>
using TinkerAnswer = std::variant<Value, TinkerRefusal>;

class TinkerService {
 public:
  /// The model, whose weights can be trained through, must outlive it.
  TinkerService(const LoadedModel& model, const TinkerOptions& options);

  const TinkerOptions& options() const { return options_; }
  int longest_text() const { return queue_.longest_text(); }

  std::string create_session();
  /// False if there is no such session: it ended, or was not heard of for half an hour.
  bool keep_alive(const std::string& session_id);
  /// Frees its adapters and policies; weights that were saved stay.
  void end_session(const std::string& session_id);

  TinkerAnswer<std::string> create_model(const CreateModelRequest& request);
  TinkerAnswer<std::string> forward_backward(ForwardBackwardRequest request);
  TinkerAnswer<std::string> optim_step(const OptimStepRequest& request);
  TinkerAnswer<std::string> save_weights(const SaveWeightsRequest& request);
  /// Without a name, the policy of this moment is kept in memory as a sampling session: a model's last few.
  TinkerAnswer<std::string> save_for_sampler(const SaveWeightsRequest& request);
  TinkerAnswer<std::string> load_weights(const LoadWeightsRequest& request);
  TinkerAnswer<std::string> sample(const TextRequest& request);
  TinkerAnswer<std::string> create_sampling_session(const SamplingSessionRequest& request);

  std::optional<LoraOptions> lora_of_model(const std::string& model_id) const;
  /// The adapter of saved weights; an error if they are not there, or over another base model.
  Result<LoraOptions> lora_of_weights(const SavedWeights& weights) const;
  /// The weights that a sampling session has, empty for those of the base model; absent if there is no such session.
  std::optional<std::string> path_of_sampler(const std::string& sampling_session_id) const;

  WorkQueue& queue() { return queue_; }
  WeightStore& store() { return store_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct TrainedModel {
    std::string session_id{};
    LoraOptions lora{};
    std::int64_t last_seq_id = 0;
    std::shared_ptr<std::unique_ptr<TrainedAdapter>> adapter{};  ///< made by the queue's thread, and used by it alone
    std::vector<std::string> snapshots{};                        ///< sampling sessions without a path
  };
  struct SamplingSession {
    std::string session_id{}, path{};
    std::shared_ptr<Sampler> sampler{};
  };
  using Adapter = std::shared_ptr<std::unique_ptr<TrainedAdapter>>;

  TinkerAnswer<std::string> submit(const std::string& id, TinkerWork work);
  /// The work on a model's adapter, as its request number `seq_id`.
  TinkerAnswer<std::string> submit(const std::string& model_id, std::int64_t seq_id,
                                   std::function<TinkerReply(TrainedAdapter&)> work);
  /// The work that makes a model that add_model() has added.
  TinkerAnswer<std::string> submit_new(const std::string& model_id, std::function<TinkerReply()> make);
  std::optional<TinkerRefusal> check_base(const std::string& name) const;
  std::optional<TinkerRefusal> add_model(const std::string& session_id, const std::string& model_id,
                                         const LoraOptions& lora, const Adapter& adapter);

  std::shared_ptr<Sampler> sampler_of(const std::optional<SavedWeights>& weights) const;
  void add_snapshot(const std::string& model_id, const std::string& sampling_session_id, const Model& policy);
  void end_forgotten_sessions();
  void drop_session(const std::string& session_id);

  const LoadedModel& base_;
  TinkerOptions options_;
  WeightStore store_;
  std::uint64_t seed_;  ///< of draws without one

  mutable std::mutex mutex_;
  std::map<std::string, Clock::time_point> sessions_;  ///< when they were heard of
  std::map<std::string, TrainedModel> models_;
  std::map<std::string, SamplingSession> samplers_;
  WorkQueue queue_;  ///< last: its work uses the rest
};

}  // namespace carnot
