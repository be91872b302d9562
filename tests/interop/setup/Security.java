import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** What Apache Kafka's authorizer, principal mapper and JAAS parser decide, without a broker. */
final class Security {
    private Security() {
    }

    private record Client(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        @Override
        public String listenerName() {
            return "PLAINTEXT";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override
        public int requestType() {
            return 0;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "";
        }

        @Override
        public int correlationId() {
            return 0;
        }
    }

    /** Each ACL is a list: id, resource type, name, pattern type, principal, host, operation, permission. */
    private static Map.Entry<Uuid, StandardAcl> acl(JsonNode each) {
        return Map.entry(new Uuid(0, each.get(0).asLong()), new StandardAcl(
            ResourceType.fromCode((byte) each.get(1).asInt()),
            each.get(2).asText(),
            PatternType.fromCode((byte) each.get(3).asInt()),
            each.get(4).asText(),
            each.get(5).asText(),
            AclOperation.fromCode((byte) each.get(6).asInt()),
            AclPermissionType.fromCode((byte) each.get(7).asInt())));
    }

    private static Client client(JsonNode each) throws Exception {
        return new Client(
            new KafkaPrincipal(each.get("type").asText(), each.get("name").asText()),
            InetAddress.getByName(each.get("host").asText()));
    }

    static ObjectNode authorize(JsonNode request, ObjectMapper json) throws Exception {
        ObjectNode answer = json.createObjectNode();
        try (StandardAuthorizer authorizer = new StandardAuthorizer()) {
            authorizer.configure(Map.of(
                "node.id", "1",
                StandardAuthorizer.SUPER_USERS_CONFIG, request.get("super").asText(),
                StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, request.get("everyone").asText()));
            authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
            Map<Uuid, StandardAcl> first = new HashMap<>();
            for (JsonNode each : request.get("acls")) {
                Map.Entry<Uuid, StandardAcl> entry = acl(each);
                first.put(entry.getKey(), entry.getValue());
            }
            authorizer.loadSnapshot(first);
            authorizer.completeInitialLoad();
            for (JsonNode each : request.get("removed")) {
                authorizer.removeAcl(new Uuid(0, each.asLong()));
            }
            for (JsonNode each : request.get("added")) {
                Map.Entry<Uuid, StandardAcl> entry = acl(each);
                authorizer.addAcl(entry.getKey(), entry.getValue());
            }
            ArrayNode decided = answer.putArray("decided");
            for (JsonNode each : request.get("questions")) {
                Action action = new Action(
                    AclOperation.fromCode((byte) each.get("operation").asInt()),
                    new ResourcePattern(
                        ResourceType.fromCode((byte) each.get("resource").asInt()), each.get("on").asText(), PatternType.LITERAL),
                    1, true, true);
                decided.add(authorizer.authorize(client(each), List.of(action)).get(0) == AuthorizationResult.ALLOWED);
            }
            ArrayNode any = answer.putArray("any");
            for (JsonNode each : request.get("any")) {
                any.add(authorizer.authorizeByResourceType(
                    client(each),
                    AclOperation.fromCode((byte) each.get("operation").asInt()),
                    ResourceType.fromCode((byte) each.get("resource").asInt())) == AuthorizationResult.ALLOWED);
            }
            ArrayNode filtered = answer.putArray("filtered");
            for (JsonNode each : request.get("filters")) {
                TreeSet<String> found = new TreeSet<>();
                authorizer.acls(new AclBindingFilter(
                    new ResourcePatternFilter(
                        ResourceType.fromCode((byte) each.get(0).asInt()),
                        each.get(1).textValue(),
                        PatternType.fromCode((byte) each.get(2).asInt())),
                    new AccessControlEntryFilter(
                        each.get(3).textValue(),
                        each.get(4).textValue(),
                        AclOperation.fromCode((byte) each.get(5).asInt()),
                        AclPermissionType.fromCode((byte) each.get(6).asInt())))).forEach(binding -> found.add(
                            binding.pattern().resourceType().code() + "|" + binding.pattern().name() + "|"
                                + binding.pattern().patternType().code() + "|" + binding.entry().principal() + "|"
                                + binding.entry().host() + "|" + binding.entry().operation().code() + "|"
                                + binding.entry().permissionType().code()));
                ArrayNode names = filtered.addArray();
                found.forEach(names::add);
            }
        }
        return answer;
    }

    /** What lists of rules make of Kerberos principals; false where Java refuses the rules, null where it refuses the name. */
    static ObjectNode kerberosNames(JsonNode request, ObjectMapper json) {
        ObjectNode answer = json.createObjectNode();
        ArrayNode results = answer.putArray("results");
        for (JsonNode each : request.get("rules")) {
            ArrayNode names = results.addArray();
            try {
                List<String> rules = new ArrayList<>();
                each.forEach(rule -> rules.add(rule.asText()));
                KerberosShortNamer namer = KerberosShortNamer.fromUnparsedRules(request.get("realm").asText(), rules);
                for (JsonNode name : request.get("names")) {
                    try {
                        names.add(namer.shortName(KerberosName.parse(name.asText())));
                    } catch (Exception problem) {
                        names.addNull();
                    }
                }
            } catch (Exception problem) {
                names.add(false);
            }
        }
        return answer;
    }

    /** What a rule text makes of distinguished names; the message where Java refuses the rules or the name. */
    static ObjectNode mapNames(JsonNode request, ObjectMapper json) {
        ObjectNode answer = json.createObjectNode();
        ArrayNode results = answer.putArray("results");
        for (JsonNode each : request.get("rules")) {
            ArrayNode names = results.addArray();
            try {
                SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(each.asText());
                for (JsonNode name : request.get("names")) {
                    try {
                        names.add(mapper.getName(name.asText()));
                    } catch (Exception problem) {
                        names.addNull();
                    }
                }
            } catch (Exception problem) {
                names.add(false);
            }
        }
        return answer;
    }

    /** The owners' names of certificates. */
    static ObjectNode certificateNames(JsonNode request, ObjectMapper json) throws Exception {
        ObjectNode answer = json.createObjectNode();
        ArrayNode results = answer.putArray("results");
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        for (JsonNode each : request.get("certificates")) {
            byte[] der = Base64.getDecoder().decode(each.asText());
            X509Certificate certificate = (X509Certificate) factory.generateCertificate(new ByteArrayInputStream(der));
            results.add(certificate.getSubjectX500Principal().getName());
        }
        return answer;
    }

    /** For each set of ssl settings the certificate of the key and the certificates that are trusted; false where Kafka refuses it. */
    static ObjectNode stores(JsonNode request, ObjectMapper json) throws Exception {
        ObjectNode answer = json.createObjectNode();
        ArrayNode results = answer.putArray("results");
        ConfigDef definition = new ConfigDef();
        SslConfigs.addClientSslSupport(definition);
        for (JsonNode each : request.get("settings")) {
            Map<String, String> given = new HashMap<>();
            each.fields().forEachRemaining(entry -> given.put(entry.getKey(), entry.getValue().asText()));
            try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
                factory.configure(definition.parse(given));
                ObjectNode found = json.createObjectNode();
                found.set("keys", certificates(factory.keystore(), true, json));
                found.set("trusted", certificates(factory.truststore(), false, json));
                results.add(found);
            } catch (Exception problem) {
                results.add(false);
            }
        }
        return answer;
    }

    private static ArrayNode certificates(KeyStore store, boolean ofKeys, ObjectMapper json) throws Exception {
        ArrayNode found = json.createArrayNode();
        if (store != null) {
            for (String alias : Collections.list(store.aliases())) {
                if (store.isKeyEntry(alias) || !ofKeys) {
                    found.add(Base64.getEncoder().encodeToString(store.getCertificate(alias).getEncoded()));
                }
            }
        }
        return found;
    }

    /** The module, flag and options of each JAAS text; null where Java refuses it. */
    static ObjectNode jaas(JsonNode request, ObjectMapper json) {
        ObjectNode answer = json.createObjectNode();
        ArrayNode results = answer.putArray("results");
        for (JsonNode each : request.get("texts")) {
            try {
                AppConfigurationEntry entry = JaasContext.loadServerContext(
                    new ListenerName("SECURE"), "PLAIN",
                    Map.of("plain." + SaslConfigs.SASL_JAAS_CONFIG, new Password(each.asText()))).configurationEntries().get(0);
                ObjectNode found = results.addObject();
                found.put("module", entry.getLoginModuleName());
                found.put("flag", entry.getControlFlag().toString());
                ObjectNode options = found.putObject("options");
                new LinkedHashMap<>(entry.getOptions()).forEach((key, value) -> options.put(key, value.toString()));
            } catch (Exception problem) {
                results.addNull();
            }
        }
        return answer;
    }
}
