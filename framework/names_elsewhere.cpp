#include "framework/names_elsewhere.h"

#include <algorithm>
#include <cctype>

#include "framework/error.h"

namespace twiddle {

namespace {

constexpr const char* paths =
    "paths are joined by 'residual: {layers: [...]}' or 'parallel: {join: concat, paths: [...]}'";
constexpr const char* softmax = "leave it out: the loss includes softmax";
constexpr const char* sigmoid_loss = "leave it out: a loss is named in 'train', as in 'loss: binary_cross_entropy'";
constexpr const char* sizes = "leave it out: a layer takes its input's size from the layer before";
constexpr const char* tensors = "leave it out: images are read as tensors from 0 to 1";
constexpr const char* separate_layer = "write a separate layer, such as '- relu', in the next line";
constexpr const char* in_train = "it is a key of 'train', such as 'mixup: 0.2'";
constexpr const char* in_data = "it is a key of 'data', such as 'normalize: imagenet'";
constexpr const char* epochs = "the length of a training is a number of epochs, as in 'epochs: 10'";
constexpr const char* warmup = "every schedule has it, as in 'schedule: {cosine: {warmup: 5}}'";

// A meaning, and the plain names that other programs have for it.
struct Meaning {
  NameElsewhere here;
  std::vector<const char*> names;
};

// A kind of thing after another. What is not among the known names of a place is never suggested there.
const std::vector<Meaning>& meanings() {
  static const std::vector<Meaning> table{
      // layers
      {{{"conv2d"}}, {"conv", "convolution", "convolution2d"}},
      {{{"conv_transpose2d"}}, {"deconv", "deconvolution", "transposedconv", "convtranspose", "conv2dtranspose"}},
      {{{"conv2d"}, "", "with as many 'groups' as channels"}, {"depthwiseconv2d"}},
      {{{"linear"}}, {"dense", "fc", "fullyconnected", "innerproduct"}},
      {{{"local_response_norm"}}, {"lrn"}},
      {{{"batch_norm"}}, {"bn", "batchnorm2d", "batchnormalization"}},
      {{{"layer_norm"}}, {"ln", "layernorm2d", "layernormalization"}},
      {{{"group_norm"}}, {"gn"}},
      {{{"max_pool"}}, {"maxpool2d", "maxpooling", "maxpooling2d"}},
      {{{"avg_pool"}}, {"avgpool2d", "averagepool", "averagepooling2d"}},
      {{{"global_avg_pool"}, "", "which gives one value a channel"}, {"adaptiveavgpool2d"}},
      {{{"global_avg_pool"}}, {"globalaveragepooling2d", "gap"}},
      {{{"max_pool"}, "", "or 'avg_pool'"}, {"pool"}},
      {{}, {"dropout2d", "elu", "selu", "celu", "relu6", "conv1d", "conv3d"}},
      {{{"silu"}}, {"swish"}},
      {{{"scale"}}, {"layerscale"}},
      {{{"drop_path"}}, {"stochasticdepth"}},
      {{{"pad"}}, {"zeropad2d", "zeropadding2d"}},
      {{{"pad"}, "", "with 'mode: mirror'"}, {"reflectionpad2d"}},
      {{{"upsample"}}, {"interpolate", "upsampling2d"}},
      {{{"cross_entropy"}, softmax}, {"softmax", "logsoftmax", "softmaxloss"}},
      {{{}, paths}, {"add", "concat", "concatenate", "skip", "shortcut", "branch", "branches", "inception"}},
      {{{}, "write its layers into the list itself; 'repeat' and 'residual' take a list, too"}, {"sequential"}},
      // options of layers
      {{{"filters"}}, {"outchannels", "channelsout", "numfilters", "channels"}},
      {{{"outputs", "filters"}}, {"numoutput"}},
      {{{"outputs"}}, {"outfeatures", "units", "classes"}},
      {{{"outputs", "classes"}}, {"numclasses"}},
      {{{"inputs"}, sizes}, {"infeatures"}},
      {{{}, sizes}, {"inchannels", "numfeatures", "normalizedshape"}},
      {{{"kernel"}}, {"kernelsize", "poolsize"}},
      {{{"pad"}}, {"padding"}},
      {{{"output_pad"}}, {"outputpadding"}},
      {{{"count_padding"}}, {"countincludepad"}},
      {{{"rounding"}}, {"ceilmode"}},
      {{{"factor"}}, {"scalefactor"}},
      {{{"bias"}}, {"usebias"}},
      {{{"init"}}, {"kernelinitializer", "initializer"}},
      {{{"rate", "probability"}}, {"p", "prob"}},
      {{{"rate"}}, {"dropprob"}},
      {{{"slope"}}, {"negativeslope", "alpha"}},
      {{{"epsilon"}}, {"eps"}},
      {{{"groups"}}, {"numgroups"}},
      {{{}, separate_layer}, {"activation", "act"}},
      // losses
      {{{"cross_entropy"}}, {"ce", "categoricalcrossentropy", "sparsecategoricalcrossentropy", "nll", "nllloss"}},
      {{{"cross_entropy"}, softmax}, {"crossentropyloss", "crossentropy"}},
      {{{"binary_cross_entropy"}}, {"bce", "multilabelsoftmarginloss"}},
      {{{"binary_cross_entropy"}, sigmoid_loss},
       {"bceloss", "bcewithlogits", "bcewithlogitsloss", "binarycrossentropy"}},
      {{{"mean_squared_error", "loss"}}, {"mse"}},
      {{{"mean_squared_error"}}, {"mseloss", "l2", "l2loss"}},
      {{}, {"l1", "l1loss", "mae"}},
      // optimizers and schedules
      {{}, {"adamax", "nadam", "radam"}},
      {{{"sgd"}, "", "as 'sgd: {momentum: 0.9}'"}, {"momentumsgd"}},
      {{{"cosine"}}, {"cosineannealing", "cosineannealinglr", "cosinedecay"}},
      {{{"step"}}, {"steplr"}},
      {{{"multistep"}}, {"multisteplr"}},
      {{{"exponential"}}, {"exponentiallr"}},
      {{{"poly"}}, {"polynomial", "polynomiallr"}},
      {{{"poly"}, "", "with its 'power' of 1"}, {"linearlr"}},
      {{{}, warmup}, {"warmup", "linearwarmup"}},
      {{{"every"}}, {"stepsize"}},
      {{{"floor"}}, {"etamin"}},
      {{{"beta1"}}, {"betas"}},
      // keys of train
      {{{"learning_rate", "--lr"}}, {"lr", "learningrate"}},
      {{{"learning_rate"}}, {"rate"}},
      {{{"weight_decay"}}, {"wd", "decay", "l2regularization"}},
      {{{"batch_size", "--batch-size"}}, {"bs", "minibatch"}},
      {{{"epochs", "--epochs"}}, {"maxepochs", "numepochs", "nepochs"}},
      {{{"--steps"}, epochs}, {"iterations", "steps", "maxsteps"}},
      {{{"optimizer"}}, {"optim", "solver"}},
      {{{"schedule"}}, {"scheduler", "lrscheduler", "lrschedule"}},
      {{{"loss"}}, {"criterion", "lossfunction", "lossfn"}},
      {{{"clip_norm"}}, {"gradclip", "gradientclip", "gradientclipval", "clipgradnorm", "maxgradnorm"}},
      {{{"accumulate"}}, {"gradaccum", "accumulategradbatches", "gradientaccumulation", "gradientaccumulationsteps"}},
      {{{"early_stop"}}, {"earlystopping"}},
      {{{"watch"}}, {"metric", "metrics", "monitor"}},
      {{{"out", "--out"}}, {"outputdir", "outdir", "savedir", "output"}},
      // metrics
      {{{"top1"}}, {"accuracy", "acc", "valacc", "valaccuracy", "valtop1"}},
      {{{"loss"}}, {"valloss"}},
      {{{"map"}}, {"meanaverageprecision"}},
      // data
      {{{"workers", "--workers"}}, {"numworkers"}},
      {{{"format", "data"}}, {"dataset"}},
      {{{"data"}}, {"datasets"}},
      {{{"format"}}, {"type"}},
      {{{"path"}}, {"root", "dir"}},
      {{{"path", "image_folder"}}, {"folder", "directory"}},
      {{{"image_folder"}}, {"imagenet"}},
      {{{"image_list"}, "", "with lines 'PATH LABEL'"}, {"csv"}},
      {{{"image_list"}}, {"txt", "list"}},
      {{{"idx"}}, {"mnist", "fashionmnist", "emnist"}},
      {{}, {"cifar100"}},
      {{{"synthetic"}}, {"fakedata", "random"}},
      {{{"val"}}, {"validation", "valid"}},
      {{{"val", "eval"}}, {"test"}},
      {{{"augment"}}, {"transform", "transforms", "augmentation", "augmentations"}},
      {{{"eval_augment"}}, {"valaugment", "testaugment", "evaltransforms", "valtransforms"}},
      // augmentation
      {{{"hflip"}}, {"flip", "fliplr", "horizontalflip", "randomhorizontalflip", "randomflip"}},
      {{{"color_jitter"}}, {"jitter"}},
      {{{"random_erasing"}}, {"cutout"}},
      {{{}, in_data}, {"normalize"}},
      {{{}, tensors}, {"totensor", "piltotensor", "toimage", "rescale"}},
      {{{}, in_train}, {"mixup", "cutmix"}},
      {{}, {"vflip", "rotate", "autoaugment"}},
      // sections, devices, precision, engines
      {{{"model"}}, {"network", "net", "architecture"}},
      {{{"train"}}, {"training", "trainer"}},
      {{{"input"}}, {"inputshape", "inputsize", "imagesize", "imgsize"}},
      {{{"cuda", "--device", "device"}}, {"gpu"}},
      {{{"--gpus", "device"}}, {"gpus"}},
      {{{"--device", "device"}}, {"cuda"}},
      {{{"cuda"}}, {"nvidia"}},
      {{{"threads", "--threads"}}, {"numthreads"}},
      {{{"seed", "--seed"}}, {"randomseed", "manualseed"}},
      {{{"fp32"}}, {"float", "float32"}},
      {{}, {"amp"}},
      {{{"bf16"}}, {"bfloat16"}},
      {{{"precision", "--precision"}}, {"dtype"}},
      {{{"engine", "--engine"}}, {"backend", "algorithm"}},
      {{{"gemm"}}, {"im2col"}},
      {{{"onednn"}}, {"mkldnn", "dnnl"}},
      {{{"measured"}}, {"fastest", "best", "benchmark"}},
      // verbs and flags
      {{{"eval"}}, {"evaluate", "validate"}},
      {{{"predict"}}, {"infer", "inference", "classify"}},
      {{{"train"}}, {"fit", "run"}},
      {{{"train"}, "", "as 'twiddle train --resume RUN'"}, {"resume"}},
      {{{"train"}, "", "as 'twiddle train CONFIG --weights FILE'"}, {"finetune"}},
      {{{"summary"}}, {"info", "show"}},
      {{{"time"}}, {"profile"}},
      {{{"merge"}}, {"fuse"}},
      {{{"check"}}, {"lint"}},
      {{{}, "twiddle-bench measures as papers did; build it by 'cmake --build build/release --target twiddle-bench'"},
       {"bench"}},
      {{{}, "write 'twiddle --version'"}, {"version"}},
      {{{"--resume"}}, {"checkpoint", "continue"}},
      {{{"--weights"}}, {"pretrained"}},
      {{{}, "leave it out: the YAML file is named without a flag"}, {"config"}},
  };
  return table;
}

}  // namespace

std::string plain_name(std::string_view name) {
  for (const std::string_view module : {"torch.", "torchvision.", "nn.", "optim.", "transforms.", "tf.", "keras."})
    if (name.starts_with(module)) name.remove_prefix(module.size());
  std::string plain;
  for (const char letter : name)
    if (letter != '_' && letter != '-' && letter != ' ')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return plain;
}

const NameElsewhere* name_elsewhere(std::string_view typed) {
  constexpr std::size_t longest = 64;
  if (typed.size() > longest) return nullptr;
  const std::string plain = plain_name(typed);
  for (const Meaning& meaning : meanings())
    if (std::find(meaning.names.begin(), meaning.names.end(), plain) != meaning.names.end()) return &meaning.here;
  return nullptr;
}

}  // namespace twiddle
