#include "apps/command_line/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "apps/command_line/console.h"
#include "apps/command_line/flags.h"
#include "apps/command_line/verb_options.h"
#include "apps/failure.h"
#include "apps/version.h"
#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/names_elsewhere.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {
namespace {

std::vector<std::string> verb_names(const std::vector<Verb>& verbs) {
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.push_back(verb.name);
  return names;
}

// Returns the error message for an argument that CLI11 did not parse, with a suggestion.
std::string unexpected_argument(const CLI::App& parser, const std::vector<Verb>& verbs) {
  const std::vector<CLI::App*> chosen = parser.get_subcommands();
  const std::string typed = parser.remaining(true).empty() ? "" : parser.remaining(true).front();
  const bool is_flag = typed.size() > 1 && typed[0] == '-';
  if (!is_flag && chosen.empty()) return unknown_name("verb", typed, verb_names(verbs));
  const std::string owner = chosen.empty() ? parser.get_name() : parser.get_name() + " " + chosen.front()->get_name();
  if (!is_flag) return fmt::format("'{}' is one argument too many; see '{} --help'", shown(typed), owner);
  const std::string name = typed.substr(0, typed.find('='));
  const std::vector<std::string> known = flag_names(chosen.empty() ? parser : *chosen.front());
  const bool sets_keys = std::find(known.begin(), known.end(), "--set") != known.end();
  const NameElsewhere* const elsewhere = name_elsewhere(name);
  std::string advice = "see '" + owner + " --help'";
  if (sets_keys) advice += "; a key of the config is set as in --set train.epochs=3";
  if (elsewhere != nullptr && !elsewhere->advice.empty()) advice = elsewhere->advice;
  if (const auto near = nearest_name(name, known)) advice = "did you mean '" + *near + "'?";
  return fmt::format("unknown flag '{}'; {}", shown(name), advice);
}

std::string whole_command(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) words.push_back(shell_word(argv[i]));
  return join_names(words, " ");
}

// Returns the arguments in reverse order, as CLI11 expects them. `help [VERB]` becomes `[VERB] --help`.
std::vector<std::string> arguments_of(const std::vector<Verb>& verbs, int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {
    while (!arguments.empty() && arguments.front() == "help") arguments.erase(arguments.begin());
    const std::vector<std::string> known = verb_names(verbs);
    const bool names_verb = !arguments.empty() && !arguments.front().starts_with('-');
    if (names_verb && std::find(known.begin(), known.end(), arguments.front()) == known.end())
      throw Error(ErrorKind::config, unknown_name("verb", arguments.front(), known));
    arguments.insert(arguments.end(), "--help");
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

int run(const Program& program, int argc, char** argv) {
  const std::vector<Verb>& verbs = program.verbs;
  Flags flags;
  if (argc > 0) flags.program = argv[0];
  flags.command = whole_command(argc, argv);
  CLI::App parser(program.description, program.name);
  parser.set_version_flag("--version", program.name + " " + version());
  parser.require_subcommand(0, 1);
  parser.footer(program.footer);
  unsigned all_flags = 0;
  std::vector<Action> actions;
  for (const Verb& verb : verbs) {
    CLI::App* app = parser.add_subcommand(verb.name, verb.help);
    VerbOptions options(*app);
    actions.push_back(verb.add(options, flags));
    declare_flags(*app, verb.flags);
    all_flags |= verb.flags;
  }
  declare_flags(parser, all_flags);
  try {
    parser.parse(arguments_of(verbs, argc, argv));
  } catch (const CLI::ExtrasError&) {
    // `--set train.epochs 3` has one word too many: report the flag's own error, which is more helpful.
    for (const CLI::App* const app : parser.get_subcommands()) collect_flags(*app, all_flags, app->get_name(), flags);
    throw Error(ErrorKind::config, unexpected_argument(parser, verbs));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return parser.exit(error);  // --help and --version
    const std::vector<CLI::App*> chosen = parser.get_subcommands();
    throw Error(ErrorKind::config, fmt::format("{}; see '{} {}--help'", error.what(), program.name,
                                               chosen.empty() ? "" : chosen.front()->get_name() + " "));
  }
  if (parser.get_subcommands().empty()) {
    write_stderr(parser.help());
    return static_cast<int>(ErrorKind::config);
  }
  const CLI::App& chosen = *parser.get_subcommands().front();
  const auto verb =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& v) { return v.name == chosen.get_name(); });
  collect_flags(parser, verb->flags, verb->name, flags);
  collect_flags(chosen, verb->flags, verb->name, flags);
  flags.own = own_flags(chosen);
  // before the run, because computing the results may take hours
  if (!flags.json.empty() && flags.json != "-") require_writable(flags.json);
  return actions[static_cast<std::size_t>(verb - verbs.begin())]();
}

}  // namespace

int run_command_line(const Program& program, int argc, char** argv) {
  fill_standard_streams();
  try {
    const int code = run(program, argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    print_error("standard output could not be written");
    return static_cast<int>(ErrorKind::failed);
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    print_failure(failure);
    return failure.code;
  }
}

}  // namespace twiddle
