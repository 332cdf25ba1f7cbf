//! What the corpus's manifest says of ptxas's output for a file.

/// Figures of ptxas's output by target: the one object of objects in a file's entry whose keys are
/// targets.
pub fn figures(about: &serde_json::Value) -> &serde_json::Map<String, serde_json::Value> {
    let all = about.as_object().into_iter().flat_map(|entry| entry.iter());
    let by_target = |(name, value): (&String, &'_ serde_json::Value)| {
        let targets = value.as_object().is_some_and(|o| !o.is_empty() && o.keys().all(|key| key.starts_with("sm_")));
        name != "kernels" && targets
    };
    all.filter(|entry| by_target(*entry)).find_map(|(_, value)| value.as_object()).expect("figures by target")
}
