#include "carnot/core/cli/command.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/remote_rollouts/worker.h"

namespace carnot {
namespace {

class WorkerCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("ADDRESS", request_.address, "nats://HOST:PORT[/NAME], as in the trainer's rollout.workers",
                 Presence::Required);
    take.text("--key-env", "NAME", request_.key_variable,
              "environment variable with the key of the trainer's HTTP server; default: it needs none");
    take.text("--credentials", "FILE", request_.keys.credentials, "for the NATS server, as nsc writes them");
    take.text("--authority", "FILE", request_.keys.authority,
              "PEM file of the authority of the NATS server's certificate; default: the system's");
    take.text("--certificate", "FILE", request_.keys.certificate,
              "PEM file of the certificate shown to the NATS server");
    take.text("--private-key", "FILE", request_.keys.private_key, "PEM file of that certificate's key");
    take.count("--threads", "N", request_.threads, 0, "of the kernels; default: as the trainer's recipe says");
    take.text(
        "--serve", "HOST[:PORT]", request_.serve,
        "serve the weights to other workers on this address; beyond loopback only with --key-env; default: do not");
    take.text("--serve-url", "URL", request_.serve_url,
              "under which others reach that; default: this machine's name and the port");
    take.flag("--one-run", request_.one_run, "end when the trainer's run has ended; default: wait for the next one");
  }

  Exit run(const Console& console) override {
    return ended(run_worker(request_, prepare_run(console, StopLeaves::Nothing)), console);
  }

 private:
  WorkerRequest request_;
};

}  // namespace

CommandEntry worker_entry() {
  return {.name = "worker",
          .arguments = "ADDRESS",
          .summary = "roll out the training steps of a trainer elsewhere",
          .example = "nats://node-1:4222",
          .make = make_command<WorkerCommand>};
}

}  // namespace carnot
