//! Tests in Rust: kube-rs against a server of its own, or against the one of $KUBECONFIG. Run by
//! spec/e2e/rust_client_spec.lua.
#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::fmt::Debug;
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret};
use k8s_openapi::api::events::v1::Event as Report;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, EvictParams, ListParams, PartialObjectMeta, Patch,
    PatchParams, PostParams, Preconditions,
};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::gvk::GroupVersionKind;
use kube::discovery::{Discovery, Scope};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Error as FinalizerError, Event as Step, finalizer};
use kube::runtime::wait::{Condition, await_condition, conditions};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

// ---------------------------------------------------------------- a server for each test

async fn start(kubeconfig: &Path) -> Result<(Child, Client), Box<dyn StdError>> {
    let kubelua = std::env::var("KUBELUA").unwrap_or("kubelua".into());
    let mut server = Command::new(kubelua)
        .args(["apiserver", "--listen", "127.0.0.1:0", "--write-kubeconfig"])
        .arg(kubeconfig)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line)?;
    assert!(line.starts_with("serving ")); // from here on it answers
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok((server, Client::try_from(config)?))
}

/// Ends a server that a test started, also when the test fails.
struct Ends(Option<Child>);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(server) = &mut self.0 {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }
}

/// Runs a test with a namespace of its own, for a minute at most.
fn with_server<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Client, String) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (server, client) = if std::env::var_os("KUBECONFIG").is_some() {
            (None, Client::try_default().await.unwrap())
        } else {
            let kubeconfig = std::env::temp_dir().join(format!("rust-{}-{name}", std::process::id()));
            let (server, client) = start(&kubeconfig).await.unwrap();
            std::fs::remove_file(kubeconfig).unwrap();
            (Some(server), client)
        };
        let _ends = Ends(server);
        let namespaces = Api::<Namespace>::all(client.clone());
        let wanted = typed(json!({"metadata": {"generateName": "rust-"}}));
        let ns = namespaces.create(&PostParams::default(), &wanted).await.unwrap().name_any();
        tokio::time::timeout(Duration::from_secs(60), test(client, ns.clone())).await.expect("60 s are over");
        namespaces.delete(&ns, &DeleteParams::default()).await.unwrap();
    });
}

fn typed<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// The code, the reason and the message of what was refused.
fn refusal<T: Debug>(result: kube::Result<T>) -> (u16, String, String) {
    match result.unwrap_err() {
        kube::Error::Api(status) => (status.code, status.reason, status.message),
        other => panic!("{other:?}"),
    }
}

async fn create<K>(api: &Api<K>, value: Value) -> K
where
    K: Clone + Debug + DeserializeOwned + serde::Serialize,
{
    api.create(&PostParams::default(), &typed(value)).await.unwrap()
}

// ---------------------------------------------------------------- watches

/// The next event of a watcher as words.
async fn next<K: Resource>(
    events: &mut (impl Stream<Item = watcher::Result<watcher::Event<K>>> + Unpin),
) -> String {
    match events.next().await.unwrap().unwrap() {
        watcher::Event::Init => "init".into(),
        watcher::Event::InitApply(o) => format!("{} is there", o.name_any()),
        watcher::Event::InitDone => "all there".into(),
        watcher::Event::Apply(o) => format!("{} applied", o.name_any()),
        watcher::Event::Delete(o) => format!("{} deleted", o.name_any()),
    }
}

#[test]
fn watches() {
    with_server("watches", |client, ns| async move {
        let cards: Api<ConfigMap> = Api::namespaced(client, &ns);
        let wanted = watcher::Config::default().labels("seen=yes");
        for (i, config) in
            [wanted.clone().page_size(2), wanted.clone().any_semantic(), wanted.clone().streaming_lists()]
                .into_iter()
                .enumerate()
        {
            let names: Vec<String> = (0..5).map(|n| format!("card-{i}-{n}")).collect();
            for name in &names {
                create(&cards, json!({"metadata": {"name": name, "labels": {"seen": "yes"}}})).await;
                create(&cards, json!({"metadata": {"name": format!("{name}-unseen")}})).await;
            }
            let mut events = pin!(watcher(cards.clone(), config.clone()));
            let mut said = Vec::new();
            while said.last().is_none_or(|s| s != "all there") {
                said.push(next(&mut events).await);
            }
            let mut expected = vec!["init".to_string()];
            expected.extend(names.iter().map(|name| format!("{name} is there")));
            expected.push("all there".into());
            assert_eq!(said, expected, "{config:?}");

            let patch = async |name: &str, value: Value| {
                cards.patch(name, &PatchParams::default(), &Patch::Merge(&value)).await.unwrap();
            };
            let first = &names[0];
            patch(first, json!({"data": {"a": "b"}})).await;
            assert_eq!(next(&mut events).await, format!("{first} applied"));
            patch(first, json!({"metadata": {"labels": {"seen": null}}})).await;
            assert_eq!(next(&mut events).await, format!("{first} deleted"));
            patch(first, json!({"metadata": {"labels": {"seen": "yes"}}})).await;
            assert_eq!(next(&mut events).await, format!("{first} applied"));
            cards.delete(&names[1], &DeleteParams::default()).await.unwrap();
            assert_eq!(next(&mut events).await, format!("{} deleted", names[1]));
            cards.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
            let mut rest = BTreeSet::new();
            while rest.len() < 4 {
                rest.insert(next(&mut events).await);
            }
            assert!(rest.contains(&format!("{first} deleted")), "{rest:?}");
        }
    });
}

#[test]
fn watches_metadata() {
    with_server("watches_metadata", |client, ns| async move {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &ns);
        create(
            &secrets,
            json!({"metadata": {"name": "a", "annotations": {"x": "y"}}, "stringData": {"k": "v"}}),
        )
        .await;
        let heads: Api<PartialObjectMeta<Secret>> = Api::namespaced(client.clone(), &ns);
        let mut events = pin!(watcher(heads, watcher::Config::default()).applied_objects());
        let found = events.next().await.unwrap().unwrap();
        assert_eq!((found.name_any().as_str(), found.annotations()["x"].as_str()), ("a", "y"));
        assert_eq!(found.types.as_ref().unwrap().kind, "PartialObjectMetadata");
        assert_eq!(secrets.get_metadata("a").await.unwrap().uid(), found.uid());
        let uid = found.uid().unwrap();
        let gone = tokio::spawn(await_condition(secrets.clone(), "a", {
            let uid = uid.clone();
            move |o: Option<&Secret>| conditions::is_deleted(&uid).matches_object(o)
        }));
        let wrong =
            Preconditions { uid: Some("00000000-0000-0000-0000-000000000000".into()), ..Default::default() };
        let (code, reason, _) =
            refusal(secrets.delete("a", &DeleteParams::default().preconditions(wrong)).await);
        assert_eq!((code, reason.as_str()), (409, "Conflict"));
        let right = Preconditions { uid: Some(uid), ..Default::default() };
        secrets.delete("a", &DeleteParams::default().preconditions(right)).await.unwrap();
        gone.await.unwrap().unwrap();
    });
}

#[test]
fn keeps_a_store() {
    with_server("keeps_a_store", |client, ns| async move {
        let cards: Api<ConfigMap> = Api::namespaced(client, &ns);
        for n in 0..20 {
            create(&cards, json!({"metadata": {"name": format!("card-{n:02}")}})).await;
        }
        let (reader, writer) = reflector::store();
        let (told, mut changes) = tokio::sync::mpsc::unbounded_channel();
        let stream = watcher(cards.clone(), watcher::Config::default().page_size(7)).default_backoff();
        let task = tokio::spawn(reflector(writer, stream).touched_objects().for_each(move |changed| {
            told.send(changed.unwrap().name_any()).unwrap();
            std::future::ready(())
        }));
        reader.wait_until_ready().await.unwrap();
        assert_eq!(reader.state().len(), 20);
        cards.delete("card-07", &DeleteParams::default()).await.unwrap();
        cards
            .patch("card-08", &PatchParams::default(), &Patch::Merge(json!({"data": {"a": "last"}})))
            .await
            .unwrap();
        let mut names = Vec::new();
        while names.last().is_none_or(|n| n != "card-08")
            || !names.contains(&"card-07".to_string())
            || names.len() < 22
        {
            names.push(changes.recv().await.unwrap());
        }
        let state = reader.state();
        assert_eq!(state.len(), 19);
        let last = state.iter().find(|c| c.name_any() == "card-08").unwrap();
        assert_eq!(last.data.as_ref().unwrap()["a"], "last");
        task.abort();
    });
}

// ---------------------------------------------------------------- a controller

const CLEANUP: &str = "rust.example.com/cleanup";

struct Context {
    client: Client,
    recorder: Recorder,
    cleaned: Mutex<Vec<String>>,
}

/// Applies a Secret for each card, and an Event each time.
async fn reconcile(
    card: Arc<ConfigMap>,
    context: Arc<Context>,
) -> Result<Action, FinalizerError<kube::Error>> {
    let ns = card.namespace().unwrap();
    let cards: Api<ConfigMap> = Api::namespaced(context.client.clone(), &ns);
    finalizer(&cards, CLEANUP, card, async |step| {
        let card = match step {
            Step::Apply(card) => card,
            Step::Cleanup(card) => {
                context.cleaned.lock().unwrap().push(card.name_any());
                return Ok(Action::await_change());
            }
        };
        let child = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": card.name_any(), "ownerReferences": [card.controller_owner_ref(&())]},
            "stringData": {"greeting": format!("Hello, {}", card.data.as_ref().unwrap()["who"])},
        });
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &ns);
        secrets.patch(&card.name_any(), &PatchParams::apply("rust-controller"), &Patch::Apply(child)).await?;
        let event = Event {
            type_: EventType::Normal,
            reason: "Greeted".into(),
            note: Some("said hello".into()),
            action: "Greet".into(),
            secondary: None,
        };
        context.recorder.publish(&event, &card.object_ref(&())).await?;
        Ok(Action::await_change())
    })
    .await
}

#[test]
fn runs_a_controller() {
    with_server("runs_a_controller", |client, ns| async move {
        let cards: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &ns);
        let reporter =
            Reporter { controller: "rust-controller".into(), instance: Some("rust-controller-0".into()) };
        let context = Arc::new(Context {
            client: client.clone(),
            recorder: Recorder::new(client.clone(), reporter),
            cleaned: Mutex::default(),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let controller = Controller::new(cards.clone(), watcher::Config::default().labels("role=card"))
            .owns(secrets.clone(), watcher::Config::default())
            .graceful_shutdown_on(async move { stopped.await.unwrap() })
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(20)), context.clone())
            .for_each(|_| std::future::ready(()));
        let controller = tokio::spawn(controller);

        let greets = |text: &'static str| {
            move |secret: Option<&Secret>| {
                let data = secret.and_then(|s| s.data.as_ref());
                data.is_some_and(|d| d["greeting"].0 == text.as_bytes())
            }
        };
        let mut card = create(
            &cards,
            json!({"metadata": {"name": "a", "labels": {"role": "card"}}, "data": {"who": "Ada"}}),
        )
        .await;
        let child = await_condition(secrets.clone(), "a", greets("Hello, Ada")).await.unwrap().unwrap();
        assert_eq!(child.owner_references()[0].uid, card.uid().unwrap());
        assert_eq!(child.managed_fields()[0].operation.as_deref(), Some("Apply"));

        // a stale version, then the card as it is now
        card.data.as_mut().unwrap().insert("who".into(), "Bob".into());
        let (code, reason, _) = refusal(cards.replace("a", &PostParams::default(), &card).await);
        assert_eq!((code, reason.as_str()), (409, "Conflict"));
        card = cards.get("a").await.unwrap();
        assert_eq!(card.finalizers(), [CLEANUP]);
        let bob = json!({"data": {"who": "Bob"}});
        cards.patch("a", &PatchParams::default(), &Patch::Merge(bob)).await.unwrap();
        await_condition(secrets.clone(), "a", greets("Hello, Bob")).await.unwrap();

        // a child that somebody deletes comes again
        secrets.delete("a", &DeleteParams::default()).await.unwrap();
        let again = await_condition(secrets.clone(), "a", greets("Hello, Bob")).await.unwrap().unwrap();
        assert_ne!(again.uid(), child.uid());

        // one Event, and the series that it became
        let reports: Api<Report> = Api::namespaced(client.clone(), &ns);
        let selected = ListParams::default()
            .fields("regarding.name=a,reason=Greeted,reportingController=rust-controller");
        let report = loop {
            let mut found = reports.list(&selected).await.unwrap().items;
            assert_eq!(found.len(), 1);
            if found[0].series.as_ref().is_some_and(|s| s.count >= 3) {
                break found.remove(0);
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(report.regarding.unwrap().uid, card.uid());
        assert_eq!(report.note.as_deref(), Some("said hello"));

        // deletion waits for the cleanup
        let uid = card.uid().unwrap();
        let deleted = cards.delete("a", &DeleteParams::default()).await.unwrap();
        assert!(deleted.left().unwrap().metadata.deletion_timestamp.is_some());
        await_condition(cards.clone(), "a", conditions::is_deleted(&uid)).await.unwrap();
        assert_eq!(*context.cleaned.lock().unwrap(), ["a"]);
        stop.send(()).unwrap();
        controller.await.unwrap();
    });
}

// ---------------------------------------------------------------- custom resources

const GROUP: &str = "rust-clients.example.com";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boards.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "boards", "singular": "board", "kind": "Board", "shortNames": ["bd"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {
                                "replicas": {"type": "integer", "minimum": 0, "default": 1},
                                "pins": {"type": "object", "additionalProperties": {"type": "string"}},
                            },
                        },
                        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                    },
                }},
            }],
        },
    })
}

#[test]
fn serves_custom_resources() {
    with_server("serves_custom_resources", |client, ns| async move {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = format!("boards.{GROUP}");
        let forced = PatchParams::apply("rust").force();
        definitions.patch(&name, &forced, &Patch::Apply(definition())).await.unwrap();
        await_condition(definitions.clone(), &name, conditions::is_crd_established()).await.unwrap();

        let gvk = GroupVersionKind::gvk(GROUP, "v1", "Board");
        let (resource, capabilities) = loop {
            // a server says that a definition is established a moment before it lists the kind
            let found = Discovery::new(client.clone()).filter(&[GROUP]).run_aggregated().await.unwrap();
            if let Some(found) = found.resolve_gvk(&gvk) {
                break found;
            }
        };
        assert_eq!(resource, ApiResource::from_gvk_with_plural(&gvk, "boards"));
        assert_eq!(capabilities.scope, Scope::Namespaced);
        let below: BTreeSet<&str> =
            capabilities.subresources.iter().map(|(r, _)| r.plural.as_str()).collect();
        assert_eq!(below, BTreeSet::from(["scale", "status"]));
        let classic = Discovery::new(client.clone()).filter(&[GROUP]).run().await.unwrap();
        assert_eq!(classic.resolve_gvk(&gvk).unwrap().0, resource);

        let boards: Api<DynamicObject> = Api::namespaced_with(client.clone(), &ns, &resource);
        let board = DynamicObject::new("a", &resource).data(json!({"spec": {"pins": {"x": "1"}}}));
        let made = boards.create(&PostParams::default(), &board).await.unwrap();
        assert_eq!(made.data["spec"], json!({"pins": {"x": "1"}, "replicas": 1}));
        let wrong = DynamicObject::new("b", &resource).data(json!({"spec": {"replicas": -1}}));
        let (code, reason, message) = refusal(boards.create(&PostParams::default(), &wrong).await);
        assert_eq!((code, reason.as_str()), (422, "Invalid"));
        assert!(message.contains("spec.replicas in body should be greater than or equal to 0"), "{message}");

        // subresources
        let status = json!({"status": {"replicas": 3}, "spec": {"replicas": 9}});
        let with_status =
            boards.patch_status("a", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
        assert_eq!(
            (&with_status.data["status"]["replicas"], &with_status.data["spec"]["replicas"]),
            (&json!(3), &json!(1))
        );
        assert_eq!(with_status.metadata.generation, Some(1));
        let scale = boards
            .patch_scale("a", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 4}})))
            .await
            .unwrap();
        assert_eq!((scale.spec.unwrap().replicas, scale.status.unwrap().replicas), (Some(4), 3));
        assert_eq!(boards.get_scale("a").await.unwrap().metadata.uid, made.metadata.uid);

        // apply, with somebody else's field in the way
        let pins = |value: &str| {
            let mut board = DynamicObject::new("a", &resource).data(json!({"spec": {"pins": {"x": value}}}));
            board.metadata.labels = Some(BTreeMap::from([("by".into(), "rust".into())]));
            board
        };
        let (code, reason, message) =
            refusal(boards.patch("a", &PatchParams::apply("rust"), &Patch::Apply(pins("2"))).await);
        assert_eq!((code, reason.as_str()), (409, "Conflict"));
        assert!(message.contains(".spec.pins.x"), "{message}");
        let applied = boards.patch("a", &forced, &Patch::Apply(pins("2"))).await.unwrap();
        assert_eq!(
            (applied.labels()["by"].as_str(), &applied.data["spec"]["pins"]["x"]),
            ("rust", &json!("2"))
        );
        let dry = boards.patch("a", &forced.clone().dry_run(), &Patch::Apply(pins("3"))).await.unwrap();
        assert_eq!(dry.resource_version(), applied.resource_version());
        let strict = Patch::Merge(json!({"spec": {"colour": "red"}}));
        let (code, _, message) =
            refusal(boards.patch("a", &PatchParams::default().validation_strict(), &strict).await);
        assert_eq!(code, 422, "{message}");
        assert!(message.contains("unknown field \"spec.colour\""), "{message}");

        boards.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        await_condition(boards.clone(), "a", conditions::is_deleted(&made.uid().unwrap())).await.unwrap();
        definitions.delete(&name, &DeleteParams::default()).await.unwrap();
    });
}

// ---------------------------------------------------------------- the rest of what programs call

#[test]
fn calls() {
    with_server("calls", |client, ns| async move {
        let version = client.apiserver_version().await.unwrap();
        assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "34"));
        let cards: Api<ConfigMap> = Api::namespaced(client.clone(), &ns);
        assert!(cards.get_opt("a").await.unwrap().is_none());
        let (code, reason, message) = refusal(cards.get("a").await);
        assert_eq!(
            (code, reason.as_str(), message.as_str()),
            (404, "NotFound", "configmaps \"a\" not found")
        );

        // get or create, get and modify
        for text in ["1", "2"] {
            let mut entry = cards
                .entry("a")
                .await
                .unwrap()
                .or_insert(ConfigMap::default)
                .and_modify(|card| _ = card.data.get_or_insert_default().insert("k".into(), text.into()));
            entry.commit(&PostParams::default()).await.unwrap();
        }
        assert_eq!(cards.get("a").await.unwrap().data.unwrap()["k"], "2");
        let mut named = cards.get("a").await.unwrap();
        named.metadata = typed(json!({"name": "a"}));
        let (code, reason, _) = refusal(cards.create(&PostParams::default(), &named).await);
        assert_eq!((code, reason.as_str()), (409, "AlreadyExists"));

        // pages
        for n in 0..5 {
            create(&cards, json!({"metadata": {"name": format!("page-{n}"), "labels": {"page": "yes"}}}))
                .await;
        }
        let mut params = ListParams::default().labels("page in (yes)").limit(2);
        let mut names = Vec::new();
        loop {
            let page = cards.list(&params).await.unwrap();
            names.extend(page.items.iter().map(|card| card.name_any()));
            match page.metadata.continue_ {
                Some(token) if !token.is_empty() => params = params.continue_token(&token),
                _ => break,
            }
        }
        assert_eq!(names, ["page-0", "page-1", "page-2", "page-3", "page-4"]);

        let review =
            json!({"spec": {"resourceAttributes": {"verb": "create", "resource": "pods", "namespace": ns}}});
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        assert!(create(&reviews, review).await.status.unwrap().allowed);

        let nodes: Api<Node> = Api::all(client.clone());
        let node = create(&nodes, json!({"metadata": {"generateName": "rust-"}})).await.name_any();
        assert_eq!(nodes.cordon(&node).await.unwrap().spec.unwrap().unschedulable, Some(true));
        assert_eq!(nodes.uncordon(&node).await.unwrap().spec.unwrap().unschedulable, None);
        nodes.delete(&node, &DeleteParams::default()).await.unwrap();

        let template = json!({
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "a", "image": "none"}]},
        });
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), &ns);
        let wanted = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
        create(&deployments, json!({"metadata": {"name": "a"}, "spec": wanted})).await;
        let restarted = deployments.restart("a").await.unwrap();
        assert_eq!(restarted.metadata.generation, Some(2));

        let pods: Api<Pod> = Api::namespaced(client.clone(), &ns);
        create(&pods, json!({"metadata": {"name": "a"}, "spec": template["spec"]})).await;
        pods.evict("a", &EvictParams::default()).await.unwrap();
        assert!(pods.get_opt("a").await.unwrap().is_none());
    });
}
