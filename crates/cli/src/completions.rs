//! Shell completions.

use super::Arguments;
use clap::{ArgGroup, Command, CommandFactory};
use clap_complete::Shell;

/// Generates the completion script of a shell, for the program under this name.
pub fn script(shell: Shell, name: &str) -> Vec<u8> {
    let mut program = Arguments::command();
    // Copies the global options to every command.
    program.build();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut offered(&program), name, &mut script);
    script
}

/// Copies a command without hidden options: the scripts would offer them, although the command refuses them.
fn offered(command: &Command) -> Command {
    let options = command.get_arguments().filter(|option| !option.is_hide_set());
    // A command that hides a global option must not inherit it again.
    let options = options.map(|option| option.clone().global(false));
    // Groups, which options may exclude, keep their remaining members.
    let is_hidden =
        |id: &&clap::Id| command.get_arguments().any(|option| option.is_hide_set() && option.get_id() == *id);
    let groups = command.get_groups().map(|group| {
        let members = group.get_args().filter(|id| !is_hidden(id)).cloned();
        ArgGroup::new(group.get_id().clone()).args(members).multiple(true)
    });
    // Clap adds the `help` command again.
    let commands = command.get_subcommands().filter(|command| command.get_name() != "help");
    // Clap needs static names. The program ends after the script.
    let name: &'static str = command.get_name().to_owned().leak();
    let copy = Command::new(name)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(options)
        .groups(groups)
        .subcommands(commands.map(offered));
    match command.get_about() {
        Some(about) => copy.about(about.clone()),
        None => copy,
    }
}

#[cfg(test)]
mod tests {
    use super::script;
    use clap_complete::Shell;

    /// Options in the part of a script for a command.
    fn options_of(shell: Shell, command: &str) -> Vec<String> {
        let script = String::from_utf8(script(shell, "denoise")).unwrap();
        let lines = script.lines();
        let is_first = |line: &str| match shell {
            Shell::Bash => line.trim_start().starts_with(&format!("denoise__subcmd__{command})")),
            Shell::Zsh => line == format!("({command})"),
            Shell::PowerShell => line.contains(&format!("'denoise;{command}' {{")),
            _ => line.contains(&format!("denoise;{command}'= {{")),
        };
        let part: Vec<&str> = if shell == Shell::Fish {
            let of = format!("__fish_denoise_using_subcommand {command}\"");
            lines.filter(|line| line.contains(&of)).collect()
        } else {
            let is_last = |line: &str| [";;", "break", "}"].contains(&line.trim());
            lines.skip_while(|line| !is_first(line)).take_while(|line| !is_last(line)).collect()
        };
        assert!(!part.is_empty(), "{shell}: {command}");
        let words = part.iter().flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '-')));
        let mut found: Vec<String> = if shell == Shell::Fish {
            let fields: Vec<&str> = part.iter().flat_map(|line| line.split(' ')).collect();
            fields.windows(2).filter(|pair| pair[0] == "-l").map(|pair| format!("--{}", pair[1])).collect()
        } else {
            words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
        };
        found.sort();
        found.dedup();
        found
    }

    #[test]
    fn hidden_options_are_not_offered() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            for command in ["completions", "man"] {
                assert_eq!(options_of(shell, command), ["--help"], "{shell}: {command}");
            }
            for (command, offered, hidden) in
                [("live", "--strength", "--seed"), ("eval", "--seed", "--no-dither")]
            {
                let options = options_of(shell, command);
                let has = |name: &str| options.iter().any(|option| option == name);
                assert!(has("--quiet") && has(offered) && !has(hidden), "{shell}: {command}: {options:?}");
            }
        }
    }
}
