#include "apps/failure.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <new>

#include "apps/command_line/console.h"
#include "apps/interrupt.h"
#include "framework/error.h"
#include "framework/interrupted.h"
#include "framework/printable.h"

namespace twiddle {

Failure failure_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return {error.what(), static_cast<int>(error.kind())};
  } catch (const Interrupted& interrupted) {
    return {interrupted.what(), Interrupt::exit_code, false};
  } catch (const std::bad_alloc&) {
    return {"out of memory on the host: its memory, or the limit on this process (ulimit -v), is used up",
            static_cast<int>(ErrorKind::device)};
  } catch (const std::filesystem::filesystem_error& error) {
    return {join("cannot open '", printable(error.path1().string()), "': ", error.code().message()),
            static_cast<int>(ErrorKind::data)};
  } catch (const std::exception& error) {
    return {error.what(), static_cast<int>(ErrorKind::failed)};
  }
}

void print_error(const std::string& message) {
  const std::string first_line = message.substr(0, message.find('\n'));
  const bool has_label = first_line.find("error: ") != std::string::npos;
  const bool colour = use_colour(stderr);
  write_stderr(fmt::format("{}{}\n",
                           has_label ? ""
                           : colour  ? "\033[1;31merror:\033[0m "
                                     : "error: ",
                           printable_lines(message)));
}

void print_failure(const Failure& failure) {
  if (failure.error)
    print_error(failure.text);
  else
    write_stderr(failure.text + "\n");
}

}  // namespace twiddle
