"""The roles and bindings that a cluster starts with: facts of release 1.36.

A rule is ``VERBS GROUPS RESOURCES [NAMES]`` or ``VERBS PATHS``, lists joined by commas; ``core`` is the core group. A
binding is its role and its subjects. The roles of controllers are in ``controller_roles``.
"""

Roles = dict[str, tuple[str, ...]]
Bindings = dict[str, tuple[str, tuple[str, ...]]]

CLUSTER_ROLES: Roles = {
    "admin": (),
    "cluster-admin": (
        "* * *",
        "* *",
    ),
    "edit": (),
    "system:aggregate-to-admin": (
        "create authorization.k8s.io localsubjectaccessreviews",
        "create,delete,deletecollection,get,list,patch,update,watch rbac.authorization.k8s.io rolebindings,roles",
    ),
    "system:aggregate-to-edit": (
        "get,list,watch core pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy",
        "impersonate core serviceaccounts",
        "create,delete,deletecollection,patch,update core pods,pods/attach,pods/exec,pods/portforward,pods/proxy",
        "create core pods/eviction",
        "create,delete,deletecollection,patch,update core configmaps,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,services/proxy",
        "create core serviceaccounts/token",
        "create,delete,deletecollection,patch,update core,events.k8s.io events",
        "create,delete,deletecollection,patch,update apps daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale",
        "create,delete,deletecollection,patch,update autoscaling horizontalpodautoscalers",
        "create,delete,deletecollection,patch,update batch cronjobs,jobs",
        "create,delete,deletecollection,patch,update extensions daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,replicationcontrollers/scale",
        "create,delete,deletecollection,patch,update policy poddisruptionbudgets",
        "create,delete,deletecollection,patch,update networking.k8s.io ingresses,networkpolicies",
        "create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io leases",
        "create,delete,deletecollection,patch,update resource.k8s.io resourceclaims,resourceclaimtemplates",
    ),
    "system:aggregate-to-view": (
        "get,list,watch core configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,replicationcontrollers/scale,serviceaccounts,services,services/status",
        "get,list,watch core bindings,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,resourcequotas/status",
        "get,list,watch core namespaces",
        "get,list,watch core,events.k8s.io events",
        "get,list,watch discovery.k8s.io endpointslices",
        "get,list,watch apps controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status",
        "get,list,watch autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status",
        "get,list,watch batch cronjobs,cronjobs/status,jobs,jobs/status",
        "get,list,watch extensions daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale",
        "get,list,watch policy poddisruptionbudgets,poddisruptionbudgets/status",
        "get,list,watch networking.k8s.io ingresses,ingresses/status,networkpolicies",
        "get,list,watch resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates",
    ),
    "system:auth-delegator": (
        "create authentication.k8s.io tokenreviews",
        "create authorization.k8s.io subjectaccessreviews",
    ),
    "system:basic-user": (
        "create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews",
        "create authentication.k8s.io selfsubjectreviews",
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        "create certificates.k8s.io certificatesigningrequests/nodeclient",
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        "create certificates.k8s.io certificatesigningrequests/selfnodeclient",
    ),
    "system:certificates.k8s.io:kube-apiserver-client-approver": (
        "approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client",
    ),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": (
        "approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet",
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": (
        "approve certificates.k8s.io signers kubernetes.io/kubelet-serving",
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": (
        "approve certificates.k8s.io signers kubernetes.io/legacy-unknown",
    ),
    "system:discovery": (
        "get /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/",
    ),
    "system:heapster": (
        "get,list,watch core events,namespaces,nodes,pods",
        "get,list,watch extensions deployments",
    ),
    "system:kube-aggregator": ("get,list,watch core endpoints,services",),
    "system:kube-controller-manager": (
        "create,patch,update core,events.k8s.io events",
        "create coordination.k8s.io leases",
        "get,update coordination.k8s.io leases kube-controller-manager",
        "create core secrets,serviceaccounts",
        "delete core secrets",
        "get core configmaps,namespaces,secrets,serviceaccounts",
        "update core secrets,serviceaccounts",
        "create authentication.k8s.io tokenreviews",
        "create authorization.k8s.io subjectaccessreviews",
        "list,watch * *",
        "create core serviceaccounts/token",
    ),
    "system:kube-dns": ("list,watch core endpoints,services",),
    "system:kube-scheduler": (
        "create,patch,update core,events.k8s.io events",
        "create coordination.k8s.io leases",
        "get,list,update,watch coordination.k8s.io leases kube-scheduler",
        "create,delete,deletecollection,get,list,patch,update,watch coordination.k8s.io leasecandidates",
        "get,list,watch core nodes",
        "delete,get,list,watch core pods",
        "create core bindings,pods/binding",
        "patch,update core pods/status",
        "get,list,watch core replicationcontrollers,services",
        "get,list,watch apps,extensions replicasets",
        "get,list,watch apps statefulsets",
        "get,list,watch policy poddisruptionbudgets",
        "get,list,watch core persistentvolumeclaims,persistentvolumes",
        "create authentication.k8s.io tokenreviews",
        "create authorization.k8s.io subjectaccessreviews",
        "get,list,watch storage.k8s.io csinodes",
        "get,list,watch storage.k8s.io volumeattachments",
        "get,list,watch core namespaces",
        "get,list,watch storage.k8s.io csidrivers",
        "get,list,watch storage.k8s.io csistoragecapacities",
        "get,list,watch resource.k8s.io deviceclasses",
        "get,list,patch,update,watch resource.k8s.io resourceclaims",
        "get,list,patch,update,watch resource.k8s.io resourceclaims/status",
        "update core pods/finalizers",
        "get,list,watch resource.k8s.io resourceslices",
        "create,delete resource.k8s.io resourceclaims",
        "patch,update resource.k8s.io resourceclaims/binding",
    ),
    "system:kubelet-api-admin": (
        "get,list,watch core nodes",
        "proxy core nodes",
        "* core nodes/log,nodes/metrics,nodes/proxy,nodes/stats",
        "* core nodes/configz,nodes/healthz,nodes/pods",
    ),
    "system:monitoring": (
        "get /flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,/statusz",
        "get core nodes/metrics",
    ),
    "system:node": (
        "create authentication.k8s.io tokenreviews",
        "create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews",
        "get,list,watch core services",
        "create,get,list,watch core nodes",
        "patch,update core nodes/status",
        "patch,update core nodes",
        "create,patch,update core,events.k8s.io events",
        "get,list,watch core pods",
        "create,delete core pods",
        "patch,update core pods/status",
        "create core pods/eviction",
        "get,list,watch core configmaps,secrets",
        "get core persistentvolumeclaims,persistentvolumes",
        "get core endpoints",
        "create,get,list,watch certificates.k8s.io certificatesigningrequests",
        "create,delete,get,patch,update coordination.k8s.io leases",
        "get storage.k8s.io volumeattachments",
        "create core serviceaccounts/token",
        "get,patch,update core persistentvolumeclaims/status",
        "get,list,watch storage.k8s.io csidrivers",
        "create,delete,get,patch,update storage.k8s.io csinodes",
        "get,list,watch node.k8s.io runtimeclasses",
        "get resource.k8s.io resourceclaims",
        "deletecollection resource.k8s.io resourceslices",
        "get core serviceaccounts",
    ),
    "system:node-bootstrapper": ("create,get,list,watch certificates.k8s.io certificatesigningrequests",),
    "system:node-problem-detector": (
        "get core nodes",
        "patch core nodes/status",
        "create,patch,update core,events.k8s.io events",
    ),
    "system:node-proxier": (
        "list,watch core endpoints,services",
        "get,list,watch core nodes",
        "create,patch,update core,events.k8s.io events",
        "list,watch networking.k8s.io servicecidrs",
        "list,watch discovery.k8s.io endpointslices",
    ),
    "system:persistent-volume-provisioner": (
        "create,delete,get,list,watch core persistentvolumes",
        "get,list,update,watch core persistentvolumeclaims",
        "get,list,watch storage.k8s.io storageclasses",
        "watch core events",
        "create,patch,update core,events.k8s.io events",
    ),
    "system:public-info-viewer": ("get /healthz,/livez,/readyz,/version,/version/",),
    "system:service-account-issuer-discovery": (
        "get /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/",
    ),
    "system:volume-scheduler": (
        "get,list,patch,update,watch core persistentvolumes",
        "get,list,watch storage.k8s.io storageclasses",
        "get,list,patch,update,watch core persistentvolumeclaims",
    ),
    "view": (),
}
AGGREGATING = {"admin": "admin", "edit": "edit", "view": "view"}
"""Cluster roles that gather the rules of those that ``AGGREGATED`` says go into them."""
AGGREGATED = {
    "edit": "admin",
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
    "view": "edit",
}
ROLES: dict[str, Roles] = {
    "kube-public": {
        "system:controller:bootstrap-signer": (
            "get,list,watch core configmaps",
            "update core configmaps cluster-info",
            "create,patch,update core,events.k8s.io events",
        ),
    },
    "kube-system": {
        "extension-apiserver-authentication-reader": (
            "get,list,watch core configmaps extension-apiserver-authentication",
        ),
        "system::leader-locking-kube-controller-manager": (
            "create,get,list,update,watch coordination.k8s.io leases",
            "create,get,list,update,watch coordination.k8s.io leasecandidates",
        ),
        "system::leader-locking-kube-scheduler": (
            "create,get,list,update,watch coordination.k8s.io leases",
            "create,get,list,update,watch coordination.k8s.io leasecandidates",
        ),
        "system:controller:bootstrap-signer": ("get,list,watch core secrets",),
        "system:controller:cloud-provider": ("create,get,list,watch core configmaps",),
        "system:controller:token-cleaner": (
            "delete,get,list,watch core secrets",
            "create,patch,update core,events.k8s.io events",
        ),
    },
}
CLUSTER_BINDINGS: Bindings = {
    "cluster-admin": ("ClusterRole cluster-admin", ("Group system:masters",)),
    "system:basic-user": ("ClusterRole system:basic-user", ("Group system:authenticated",)),
    "system:discovery": ("ClusterRole system:discovery", ("Group system:authenticated",)),
    "system:kube-controller-manager": (
        "ClusterRole system:kube-controller-manager",
        ("User system:kube-controller-manager",),
    ),
    "system:kube-dns": ("ClusterRole system:kube-dns", ("ServiceAccount kube-system/kube-dns",)),
    "system:kube-scheduler": ("ClusterRole system:kube-scheduler", ("User system:kube-scheduler",)),
    "system:monitoring": ("ClusterRole system:monitoring", ("Group system:monitoring",)),
    "system:node": ("ClusterRole system:node", ()),
    "system:node-proxier": ("ClusterRole system:node-proxier", ("User system:kube-proxy",)),
    "system:public-info-viewer": (
        "ClusterRole system:public-info-viewer",
        (
            "Group system:authenticated",
            "Group system:unauthenticated",
        ),
    ),
    "system:service-account-issuer-discovery": (
        "ClusterRole system:service-account-issuer-discovery",
        ("Group system:serviceaccounts",),
    ),
    "system:volume-scheduler": ("ClusterRole system:volume-scheduler", ("User system:kube-scheduler",)),
}
BINDINGS: dict[str, Bindings] = {
    "kube-public": {
        "system:controller:bootstrap-signer": (
            "Role system:controller:bootstrap-signer",
            ("ServiceAccount kube-system/bootstrap-signer",),
        ),
    },
    "kube-system": {
        "system::extension-apiserver-authentication-reader": (
            "Role extension-apiserver-authentication-reader",
            (
                "User system:kube-controller-manager",
                "User system:kube-scheduler",
            ),
        ),
        "system::leader-locking-kube-controller-manager": (
            "Role system::leader-locking-kube-controller-manager",
            (
                "User system:kube-controller-manager",
                "ServiceAccount kube-system/kube-controller-manager",
                "ServiceAccount kube-system/leader-election-controller",
            ),
        ),
        "system::leader-locking-kube-scheduler": (
            "Role system::leader-locking-kube-scheduler",
            (
                "User system:kube-scheduler",
                "ServiceAccount kube-system/kube-scheduler",
            ),
        ),
        "system:controller:bootstrap-signer": (
            "Role system:controller:bootstrap-signer",
            ("ServiceAccount kube-system/bootstrap-signer",),
        ),
        "system:controller:cloud-provider": (
            "Role system:controller:cloud-provider",
            ("ServiceAccount kube-system/cloud-provider",),
        ),
        "system:controller:token-cleaner": (
            "Role system:controller:token-cleaner",
            ("ServiceAccount kube-system/token-cleaner",),
        ),
    },
}
