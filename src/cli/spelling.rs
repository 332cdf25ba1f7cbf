//! Translates ptxas spellings of options of our own commands into long options that clap
//! understands. Unknown spellings pass unchanged, so that the error message quotes them as written.

/// Spellings, and the long option that each stands for.
const SPELLINGS: [(&str, &str); 2] = [("-arch", "--gpu-name"), ("--arch", "--gpu-name")];

/// Rewrites every argument after the program's name.
pub fn normalise(args: Vec<String>) -> Vec<String> {
    let rewrite = |arg: String| {
        let (name, value) = arg.split_once('=').map_or((arg.as_str(), None), |(n, v)| (n, Some(v)));
        match (SPELLINGS.iter().find(|s| s.0 == name), value) {
            (Some((_, long)), Some(value)) => format!("{long}={value}"),
            (Some((_, long)), None) => (*long).to_string(),
            (None, _) => arg,
        }
    };
    args.into_iter().enumerate().map(|(i, arg)| if i == 0 { arg } else { rewrite(arg) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_target() {
        let words = |s: &str| s.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(
            normalise(words("s -arch=sm_90 -arch sm_80 --gpu-name=sm_75 -o x k.ptx")),
            words("s --gpu-name=sm_90 --gpu-name sm_80 --gpu-name=sm_75 -o x k.ptx")
        );
    }
}
