#include "models/training/trainer.h"

#include "data/augmentation/augment.h"
#include "models/checkpoints/weights.h"
#include "models/evaluation/evaluate.h"
#include "models/training/trainer_impl.h"

namespace twiddle {

Trainer::Trainer(Experiment experiment, Options options)
    : impl_(std::make_unique<Impl>(std::move(experiment), std::move(options))) {
  impl_->advising([&] { impl_->start(); });
}
Trainer::~Trainer() = default;

Trainer::End Trainer::run(const std::vector<TrainObserver*>& observers, const std::atomic<bool>& stop) {
  return impl_->advising([&] { return impl_->run(observers, stop); });
}

const TakenWeights* Trainer::taken_weights() const {
  return impl_->taken_weights ? &*impl_->taken_weights : nullptr;
}
bool Trainer::has_validation() const {
  return impl_->data.val() != nullptr;
}
std::vector<Metric> Trainer::metrics() const {
  return impl_->metrics;
}
const Metric& Trainer::watched() const {
  return impl_->early_stopping.metric();
}
bool Trainer::stopped_early() const {
  return impl_->state.epoch < impl_->config.train.epochs && impl_->early_stopping.stops(impl_->state);
}
TargetKind Trainer::target() const {
  return impl_->loss_function.target();
}
std::shared_ptr<const EvalResult> Trainer::last_validation() const {
  return impl_->last_validation;
}
const Config& Trainer::config() const {
  return impl_->config;
}
Context& Trainer::context() {
  return impl_->ctx;
}
const Model& Trainer::model() const {
  return impl_->experiment.model;
}
const Optimizer& Trainer::optimizer() const {
  return impl_->optimizer;
}
const Loss& Trainer::loss() const {
  return impl_->loss_function;
}
const RunState& Trainer::state() const {
  return impl_->state;
}
const Dataset& Trainer::train_data() const {
  return *impl_->data.data().train;
}
const Dataset* Trainer::val_data() const {
  return impl_->data.data().val.get();
}
const Augment& Trainer::val_augment() const {
  return *impl_->data.data().val_augment;
}
Communicator& Trainer::ranks() const {
  return *impl_->ranks;
}
const MemoryPlan& Trainer::memory_plan() const {
  return impl_->plan;
}
std::int64_t Trainer::images_here() const {
  return impl_->images_here;
}
std::int64_t Trainer::batches_per_epoch() const {
  return impl_->batches_per_epoch();
}
std::int64_t Trainer::steps_per_epoch() const {
  return impl_->steps_per_epoch();
}
std::string Trainer::last_checkpoint() const {
  return impl_->saver.last_checkpoint();
}
const std::vector<std::string>& Trainer::warnings() const {
  return impl_->warnings;
}
std::int64_t Trainer::skipped() const {
  return impl_->data.skipped();
}
std::vector<std::string> Trainer::skipped_messages() const {
  return impl_->data.skipped_messages();
}

}  // namespace twiddle
