import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/** Reads lines {"reader": text, "writer": text}; answers each with both canonical texts (null for no schema) and the incompatibilities. */
public final class Verdicts {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    StringBuilder answers = new StringBuilder();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      JsonNode question = json.readTree(line);
      Schema reader = parsed(question.get("reader").asText());
      Schema writer = parsed(question.get("writer").asText());
      ObjectNode answer = json.createObjectNode();
      answer.put("reader", reader == null ? null : reader.toString());
      answer.put("writer", writer == null ? null : writer.toString());
      ArrayNode kinds = answer.putArray("kinds");
      if (reader != null && writer != null) {
        SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult().getIncompatibilities()
            .forEach(each -> kinds.add(each.getType().name() + " " + each.getLocation()));
      }
      answers.append(json.writeValueAsString(answer)).append('\n');
    }
    System.out.write(answers.toString().getBytes(StandardCharsets.UTF_8));
    System.out.flush();
  }

  private static Schema parsed(String text) {
    try {
      return new Schema.Parser().setValidateDefaults(true).parse(text);
    } catch (RuntimeException refused) {
      return null;
    }
  }
}
