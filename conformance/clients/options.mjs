// The command line of the scripts:
//
//   node SCRIPT [--mode=MODE] [--only=CHECK,CHECK] [--patience=MS] -- SERVER [ARGUMENT...]
const separator = process.argv.indexOf('--');

// option returns the value of --name=value, or undefined.
export function option(name) {
  const prefix = `--${name}=`;
  const ours = separator < 0 ? process.argv : process.argv.slice(0, separator);
  return ours.find((arg) => arg.startsWith(prefix))?.slice(prefix.length);
}

// serverCommand returns the server's command and its arguments. Without one
// the script ends with status 2.
export function serverCommand() {
  const command = separator < 0 ? [] : process.argv.slice(separator + 1);
  if (command.length === 0) {
    console.error('usage: node SCRIPT [--mode=MODE] [--only=CHECK,CHECK] [--patience=MS] -- SERVER [ARGUMENT...]');
    process.exit(2);
  }
  return command;
}
